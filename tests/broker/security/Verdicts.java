// Has Kafka's StandardAuthorizer decide. Each line of the file is tab-separated:
//   S super.users allow.everyone.if.no.acl.found      begin anew, without ACLs
//   A type name pattern principal host operation permission
//   Q principal host operation type name              print 1 if allowed, else 0
//   T principal host operation type                   the same for any resource of the type
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class Verdicts {
    record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "test"; }
        public int correlationId() { return 0; }
    }

    static Context context(String principal, String host) throws Exception {
        String[] parts = principal.split(":", 2);
        return new Context(new KafkaPrincipal(parts[0], parts[1]), InetAddress.getByName(host));
    }

    public static void main(String[] arguments) throws Exception {
        StandardAuthorizer authorizer = null;
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "S" -> {
                    authorizer = new StandardAuthorizer();
                    Map<String, Object> settings = new HashMap<>();
                    settings.put("super.users", words[1]);
                    settings.put("allow.everyone.if.no.acl.found", words[2]);
                    authorizer.configure(settings);
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    authorizer.completeInitialLoad();
                }
                case "A" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(ResourceType.valueOf(words[1]), words[2],
                    PatternType.valueOf(words[3]), words[4], words[5], AclOperation.valueOf(words[6]),
                    AclPermissionType.valueOf(words[7])));
                case "Q" -> {
                    ResourcePattern resource = new ResourcePattern(ResourceType.valueOf(words[4]), words[5], PatternType.LITERAL);
                    Action action = new Action(AclOperation.valueOf(words[3]), resource, 1, true, true);
                    print(out, authorizer.authorize(context(words[1], words[2]), List.of(action)).get(0));
                }
                case "T" -> print(out, authorizer.authorizeByResourceType(context(words[1], words[2]),
                    AclOperation.valueOf(words[3]), ResourceType.valueOf(words[4])));
            }
        }
        System.out.print(out);
    }

    static void print(StringBuilder out, AuthorizationResult result) {
        out.append(result == AuthorizationResult.ALLOWED ? "1\n" : "0\n");
    }
}
