// Prints what Kafka's own encoders make of the znodes that a short run of a broker does not write.
// One line each: path, tab, payload. Run by make.py with Kafka 3.9.2 on the class path.

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.feature.Features;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.LeaderRecoveryState;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

public final class Encoders {
    private static void print(String path, byte[] payload) {
        System.out.println(path + "\t" + new String(payload));
    }

    private static Seq<Object> replicas(Integer... ids) {
        List<Object> boxed = new ArrayList<>(List.of(ids));
        return CollectionConverters.asScala(boxed).toSeq();
    }

    private static Set<TopicPartition> partitions(int count) {
        Set<TopicPartition> partitions = new LinkedHashSet<>();
        for (int index = 0; index < count; index++)
            partitions.add(new TopicPartition("orders", index));
        return partitions;
    }

    public static void main(String[] args) {
        Map<TopicPartition, scala.collection.Seq<Object>> reassigned = new LinkedHashMap<>();
        reassigned.put(new TopicPartition("orders", 0), replicas(2, 1));
        reassigned.put(new TopicPartition("pay.ments-2", 1), replicas(1));
        print(kafka.zk.ReassignPartitionsZNode.path(),
            kafka.zk.ReassignPartitionsZNode.encode(CollectionConverters.asScala(reassigned)));

        print(kafka.zk.PreferredReplicaElectionZNode.path(),
            kafka.zk.PreferredReplicaElectionZNode.encode(
                CollectionConverters.asScala(partitions(2)).toSet()));

        print(kafka.zk.IsrChangeNotificationSequenceZNode.path("0000000007"),
            kafka.zk.IsrChangeNotificationSequenceZNode.encode(CollectionConverters.asScala(partitions(3))));

        print(kafka.zk.LogDirEventNotificationSequenceZNode.path("0000000000"),
            kafka.zk.LogDirEventNotificationSequenceZNode.encode(3));

        print(kafka.zk.TopicPartitionStateZNode.path(new TopicPartition("unclean", 0)),
            kafka.zk.TopicPartitionStateZNode.encode(recovering()));

        Map<TopicPartition, kafka.controller.ReplicaAssignment> assignment = new LinkedHashMap<>();
        assignment.put(new TopicPartition("old", 0),
            new kafka.controller.ReplicaAssignment(replicas(1, 2), replicas(2), replicas()));
        print(kafka.zk.TopicZNode.path("old"),
            kafka.zk.TopicZNode.encode(scala.Option.empty(), CollectionConverters.asScala(assignment)));

        print(kafka.zk.BrokerIdZNode.path(7),
            kafka.zk.BrokerIdZNode.encode(5, null, -1, CollectionConverters.asScala(List.of(
                endPoint("::1", "CLIENT", SecurityProtocol.SASL_SSL),
                endPoint("host.example", "SSL", SecurityProtocol.SSL))).toSeq(),
                9999, scala.Option.apply("räck/1"), features()));
    }

    private static kafka.controller.LeaderIsrAndControllerEpoch recovering() {
        List<AlterPartitionRequestData.BrokerState> isr =
            List.of(new AlterPartitionRequestData.BrokerState().setBrokerId(3));
        return new kafka.controller.LeaderIsrAndControllerEpoch(
            new kafka.api.LeaderAndIsr(3, 8, LeaderRecoveryState.RECOVERING,
                CollectionConverters.asScala(isr).toList(), 0), 4);
    }

    private static kafka.cluster.EndPoint endPoint(String host, String listener, SecurityProtocol protocol) {
        return new kafka.cluster.EndPoint(host, 9093, new ListenerName(listener), protocol);
    }

    private static Features<SupportedVersionRange> features() {
        return Features.supportedFeatures(Map.of("group.version", new SupportedVersionRange((short) 0, (short) 1)));
    }
}
