/**
 * Writes what Kafka's own message classes know, as JSON lines, for the tests of our codecs.
 *
 * <p>Standard input names the messages and the versions wanted, one line each: {@code FetchRequest 0 18}. For every
 * message that is on the classpath two kinds of lines go to standard output:
 *
 * <pre>
 *   {"message": NAME, "lowest": V, "highest": V, "apiKey": K, "unstable": bool, "headerVersions": [...],
 *    "fields": {...}}
 *   {"message": NAME, "version": V, "bytes": HEX, "content": {...}}
 * </pre>
 *
 * <p>The first holds the default of every field, the second one encoded message beside Kafka's own JSON view of it.
 * Nothing here knows our schemas, nor even Kafka's: which fields a version has, and which of them may be null, is found
 * by setting them and asking the class whether it would still write itself.
 *
 * <p>With the argument {@code echo} a line of input is a message that somebody else encoded,
 * {@code FetchRequest 18 HEX}, and the answer, at once, is the second kind of line for what was read from it,
 * or {@code {"refused": WHY}}.
 */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public final class Vectors {
    private static final List<String> PACKAGES = List.of(
        "org.apache.kafka.common.message.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int RANDOM_SAMPLES = 5;
    private static final int FULL_SAMPLES = 2;

    private static PrintStream out;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader wanted = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        boolean isEcho = args.length > 0 && args[0].equals("echo");
        for (String line = wanted.readLine(); line != null; line = wanted.readLine()) {
            String[] words = line.split(" ");
            Class<?> type = messageClass(words[0]);
            if (isEcho) {
                answer(words[0], type, Short.parseShort(words[1]), words.length > 2 ? words[2] : "");
            } else if (type != null) {
                writeMessage(words[0], type, Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            }
        }
        out.flush();
    }

    private static void answer(String name, Class<?> type, short version, String hex) throws Exception {
        try {
            echo(name, type, version, hex);
        } catch (RuntimeException refused) {
            out.println(JSON.writeValueAsString(JSON.createObjectNode().put("refused", refused.toString())));
        }
        out.flush();
    }

    private static void echo(String name, Class<?> type, short version, String hex) throws Exception {
        ByteBuffer encoded = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        ApiMessage message = (ApiMessage) create(type);
        message.read(new ByteBufferAccessor(encoded), version);
        if (encoded.hasRemaining()) {
            throw new IllegalArgumentException(encoded.remaining() + " bytes too many for " + message);
        }
        writeVector(name, message, version);
    }

    private static Class<?> messageClass(String name) {
        for (String location : PACKAGES) {
            for (String suffix : List.of("Data", "")) {
                try {
                    return Class.forName(location + name + suffix);
                } catch (ClassNotFoundException absent) {
                    continue;
                }
            }
        }
        return null;
    }

    private static void writeMessage(String name, Class<?> type, int lowest, int highest) throws Exception {
        ApiMessage empty = (ApiMessage) create(type);
        out.println(JSON.writeValueAsString(describe(name, empty)));
        for (int version = lowest; version <= highest; version++) {
            if (version < empty.lowestSupportedVersion() || version > empty.highestSupportedVersion()) {
                continue;
            }
            writeVector(name, (ApiMessage) create(type), (short) version);
            Random dice = new Random((name + version).hashCode());
            for (int sample = 0; sample < RANDOM_SAMPLES + FULL_SAMPLES; sample++) {
                Filler filler = new Filler((short) version, dice, sample < FULL_SAMPLES);
                writeVector(name, (ApiMessage) filler.fill((Message) create(type)), (short) version);
            }
        }
    }

    private static void writeVector(String name, ApiMessage message, short version) throws Exception {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Method write = converter.getMethod("write", message.getClass(), short.class, boolean.class);
        JsonNode content = (JsonNode) write.invoke(null, message, version, false);
        putRecords(content, message);

        ObjectNode line = JSON.createObjectNode();
        line.put("message", name).put("version", version);
        line.put("bytes", HexFormat.of().formatHex(encode(message, version)));
        line.set("content", content);
        out.println(JSON.writeValueAsString(line));
    }

    private static byte[] encode(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        // Room to spare, so that a wrong size shows as a difference and not as an overflow.
        ByteBuffer buffer = ByteBuffer.allocate(size.totalSize() + 1024);
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.position() != size.totalSize()) {
            throw new IllegalStateException("Kafka disagrees with itself on the size of " + message);
        }
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    /** Kafka's JSON tells only the size of a records field; put the bytes in its place. */
    private static void putRecords(JsonNode content, Object message) throws Exception {
        List<String> names = new ArrayList<>();
        content.fieldNames().forEachRemaining(names::add);
        for (String name : names) {
            if (name.endsWith("SizeInBytes") && getter(message, name) == null) {
                String records = name.substring(0, name.length() - "SizeInBytes".length());
                ((ObjectNode) content).remove(name);
                ((ObjectNode) content).put(records, Records.bytes(getter(message, records).invoke(message)));
            } else if (content.get(name).isObject()) {
                putRecords(content.get(name), getter(message, name).invoke(message));
            } else if (content.get(name).isArray()) {
                Iterator<?> elements = ((Collection<?>) getter(message, name).invoke(message)).iterator();
                for (JsonNode element : content.get(name)) {
                    putRecords(element, elements.next());
                }
            }
        }
    }

    private static Method getter(Object message, String name) {
        try {
            return message.getClass().getMethod(name);
        } catch (NoSuchMethodException absent) {
            return null;
        }
    }

    private static ObjectNode describe(String name, ApiMessage empty) throws Exception {
        ObjectNode line = JSON.createObjectNode();
        line.put("message", name);
        line.put("lowest", empty.lowestSupportedVersion()).put("highest", empty.highestSupportedVersion());
        line.put("apiKey", empty.apiKey());
        if (name.endsWith("Request") || name.endsWith("Response")) {
            ApiMessageType api = ApiMessageType.fromApiKey(empty.apiKey());
            line.put("unstable", api.latestVersionUnstable());
            ArrayNode headers = line.putArray("headerVersions");
            short highest = empty.highestSupportedVersion();
            for (short version = empty.lowestSupportedVersion(); version <= highest; version++) {
                headers.add(name.endsWith("Request") ? api.requestHeaderVersion(version)
                    : api.responseHeaderVersion(version));
            }
        }
        line.set("fields", describeFields(empty));
        return line;
    }

    /** Field by field: its default, and the same for the fields of a struct or of an array's elements. */
    private static ObjectNode describeFields(Object empty) throws Exception {
        ObjectNode fields = JSON.createObjectNode();
        for (Setter setter : Setter.of(empty.getClass()).values()) {
            Object value = setter.field.get(empty);
            ObjectNode field = fields.putObject(setter.field.getName());
            field.set("default", value instanceof Message ? JSON.createObjectNode() : JSON.valueToTree(plain(value)));
            Class<?> struct = setter.structClass();
            if (struct != null) {
                field.set("fields", describeFields(create(struct)));
            }
        }
        return fields;
    }

    private static Object plain(Object value) {
        if (value instanceof Uuid) {
            return value.toString();
        }
        return value instanceof ByteBuffer ? ((ByteBuffer) value).array() : value;
    }

    private static Object create(Class<?> type) throws Exception {
        return type.getConstructor().newInstance();
    }

    /** One field of a generated class, with the method that sets it. */
    private record Setter(Field field, Method method) {
        static Map<String, Setter> of(Class<?> type) throws Exception {
            Map<String, Setter> setters = new LinkedHashMap<>();
            for (Field field : type.getDeclaredFields()) {
                String name = field.getName();
                // `next` and `prev` link the elements of Kafka's own hash collection.
                boolean isContent = !Modifier.isStatic(field.getModifiers()) && !name.equals("_unknownTaggedFields")
                    && !name.equals("next") && !name.equals("prev");
                if (isContent) {
                    field.setAccessible(true);
                    String method = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
                    setters.put(name, new Setter(field, type.getMethod(method, field.getType())));
                }
            }
            return setters;
        }

        Type elementType() {
            Type generic = field.getGenericType();
            if (field.getType() != List.class) {
                generic = field.getType().getGenericSuperclass();
            }
            return ((ParameterizedType) generic).getActualTypeArguments()[0];
        }

        boolean isCollection() {
            return Collection.class.isAssignableFrom(field.getType());
        }

        Class<?> structClass() {
            Class<?> type = isCollection() ? (Class<?>) elementType() : field.getType();
            return Message.class.isAssignableFrom(type) ? type : null;
        }
    }

    /** Fills a message with seeded content; a full one has no nulls, no empty arrays and hardly a default. */
    private static final class Filler {
        private static final String[] STRINGS = {
            "", "a", "orders", "größer", "主题", "🪵 log", "line\nbreak \"quoted\" \\", "0123456789".repeat(13)};

        private final short version;
        private final Random dice;
        private final boolean isFull;

        Filler(short version, Random dice, boolean isFull) {
            this.version = version;
            this.dice = dice;
            this.isFull = isFull;
        }

        Message fill(Message message) throws Exception {
            if (!isWritable(message)) {
                return message; // a struct that this version does not have
            }
            for (Setter setter : Setter.of(message.getClass()).values()) {
                Object original = setter.field.get(message);
                if (mayBeNull(setter) && dice.nextInt(4) == 0 && trySet(message, setter, null)) {
                    continue;
                }
                if (!trySet(message, setter, value(setter))) {
                    setter.method.invoke(message, original);
                }
            }
            return message;
        }

        private boolean mayBeNull(Setter setter) {
            return !isFull && !setter.field.getType().isPrimitive() && setter.field.getType() != Uuid.class;
        }

        private boolean trySet(Message message, Setter setter, Object value) throws Exception {
            try {
                setter.method.invoke(message, value);
            } catch (InvocationTargetException outOfRange) {
                // Only unsigned 16 and 32 bit fields refuse a value of their Java type.
                setter.method.invoke(message, value instanceof Integer ? (Object) ((int) value & 0xffff)
                    : (Object) ((long) value & 0xffffffffL));
            }
            return isWritable(message);
        }

        private boolean isWritable(Message message) {
            try {
                encode(message, version);
                return true;
            } catch (NullPointerException | UnsupportedVersionException refused) {
                return false;
            }
        }

        private Object value(Setter setter) throws Exception {
            return setter.isCollection() ? collection(setter) : value((Class<?>) setter.field.getType());
        }

        @SuppressWarnings("unchecked")
        private Object collection(Setter setter) throws Exception {
            Class<?> elementType = (Class<?>) setter.elementType();
            Collection<Object> elements = setter.field.getType() == List.class ? new ArrayList<>()
                : (Collection<Object>) create(setter.field.getType());
            int size = isFull ? 1 + dice.nextInt(2) : dice.nextInt(4);
            // More than 127 elements, now and then, so that the compact length takes two bytes.
            if (!Message.class.isAssignableFrom(elementType) && dice.nextInt(40) == 0) {
                size = 130;
            }
            for (int index = 0; index < size; index++) {
                elements.add(size == 130 ? smallValue(elementType) : value(elementType));
            }
            return elements;
        }

        private Object smallValue(Class<?> type) throws Exception {
            return type == String.class ? "s" : type == Integer.class ? (Object) 7 : value(type);
        }

        private Object value(Class<?> type) throws Exception {
            if (Message.class.isAssignableFrom(type)) {
                return fill((Message) create(type));
            } else if (type == boolean.class || type == Boolean.class) {
                return isFull || dice.nextBoolean();
            } else if (type == byte.class || type == Byte.class) {
                return (byte) number(Byte.MIN_VALUE, Byte.MAX_VALUE);
            } else if (type == short.class || type == Short.class) {
                return (short) number(Short.MIN_VALUE, Short.MAX_VALUE);
            } else if (type == int.class || type == Integer.class) {
                return (int) number(Integer.MIN_VALUE, Integer.MAX_VALUE);
            } else if (type == long.class || type == Long.class) {
                return number(Long.MIN_VALUE, Long.MAX_VALUE);
            } else if (type == double.class || type == Double.class) {
                return new double[] {0.0, -1.5, 1e300, Double.MIN_VALUE, dice.nextGaussian()}[dice.nextInt(5)];
            } else if (type == String.class) {
                return STRINGS[isFull ? 1 + dice.nextInt(STRINGS.length - 1) : dice.nextInt(STRINGS.length)];
            } else if (type == Uuid.class) {
                return !isFull && dice.nextInt(5) == 0 ? Uuid.ZERO_UUID : new Uuid(dice.nextLong(), dice.nextLong());
            } else if (type == byte[].class) {
                return bytes();
            } else if (type == ByteBuffer.class) {
                return ByteBuffer.wrap(bytes());
            }
            return Records.of(type, bytes());
        }

        private long number(long lowest, long highest) {
            // The first four are never a default, so that a full message has all its tagged fields.
            long random = 2 + (dice.nextLong() & (highest >> 1));
            long[] choices = {random, lowest, -random, highest - 1, 1, 0, -1, highest};
            return choices[dice.nextInt(isFull ? 4 : choices.length)];
        }

        private byte[] bytes() {
            byte[] bytes = new byte[isFull ? 1 + dice.nextInt(12) : new int[] {0, 1, 20, 140}[dice.nextInt(4)]];
            dice.nextBytes(bytes);
            return bytes;
        }
    }

    /** Records fields: the class moved between the two versions, so that it is reached by name only. */
    private static final class Records {
        static Object of(Class<?> type, byte[] bytes) throws Exception {
            Class<?> memoryRecords = Class.forName(type.getPackageName() + ".MemoryRecords");
            Method wrap = memoryRecords.getMethod("readableRecords", ByteBuffer.class);
            return wrap.invoke(null, ByteBuffer.wrap(bytes));
        }

        static byte[] bytes(Object records) throws Exception {
            ByteBuffer buffer = (ByteBuffer) records.getClass().getMethod("buffer").invoke(records);
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return bytes;
        }
    }
}
