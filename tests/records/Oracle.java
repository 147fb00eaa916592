// What Java answers: prints murmur2 and String.hashCode of each argument, as Kafka's clients compute them.

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Utils;

public class Oracle {
    public static void main(String[] arguments) {
        for (String argument : arguments) {
            int murmur2 = Utils.murmur2(argument.getBytes(StandardCharsets.UTF_8));
            System.out.println(murmur2 + " " + Utils.toPositive(murmur2) + " " + argument.hashCode());
        }
    }
}
