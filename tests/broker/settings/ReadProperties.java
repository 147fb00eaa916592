// Reads one property file per line of the given file, written in hexadecimal; prints its pairs the same way.

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Properties;
import java.util.stream.Collectors;

public class ReadProperties {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            Properties properties = new Properties();
            properties.load(new ByteArrayInputStream(HexFormat.of().parseHex(line)));
            System.out.println(properties.stringPropertyNames().stream()
                .map(key -> "[\"" + hex(key) + "\", \"" + hex(properties.getProperty(key)) + "\"]")
                .collect(Collectors.joining(", ", "[", "]")));
        }
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
