// A transactional producer of Kafka's Java client, driven by lines on standard input; each is answered by a line.
//
//     java -cp 'libs/*' Transactions.java BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS
//
// begin | send TOPIC PARTITION VALUE | offset GROUP TOPIC OFFSET | commit | abort

import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactions {
    public static void main(String[] given) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("transactional.id", given[1]);
        settings.put("transaction.timeout.ms", given[2]);
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        answer(() -> producer.initTransactions());
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            answer(() -> run(producer, words));
        }
        producer.close(java.time.Duration.ZERO);
    }

    static void run(KafkaProducer<String, String> producer, String[] words) throws Exception {
        switch (words[0]) {
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "send" ->
                producer.send(new ProducerRecord<>(words[1], Integer.parseInt(words[2]), null, words[3])).get();
            case "offset" ->
                producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(words[2], 0), new OffsetAndMetadata(Long.parseLong(words[3]))),
                    new ConsumerGroupMetadata(words[1]));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    interface Step {
        void run() throws Exception;
    }

    static void answer(Step step) {
        try {
            step.run();
            System.out.println("ok");
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            System.out.println("refused " + cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
    }
}
