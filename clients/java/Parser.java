// Reads bodies as Java does with Jackson: one in hexadecimal a line, one line of JSON back with what each
// parser read. Into classes, it may be told to take a member of another case for the one that is named.

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

public final class Parser {
    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Meta {
        public JsonNode progressToken;

        @JsonProperty("io.modelcontextprotocol/protocolVersion")
        public String version = "";
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Params {
        public String name = "";
        public JsonNode arguments;

        @JsonProperty("_meta")
        public Meta meta = new Meta();
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Call {
        public JsonNode id;
        public String method = "";
        public Params params = new Params();
    }

    private static final JsonMapper EXACT = new JsonMapper();
    private static final JsonMapper FOLDING =
            JsonMapper.builder().enable(MapperFeature.ACCEPT_CASE_INSENSITIVE_PROPERTIES).build();

    private interface Reader {
        JsonNode read(byte[] body) throws IOException;
    }

    private static JsonNode told(JsonNode value) {
        if (value == null) return EXACT.nullNode();
        if (value.isNumber()) return EXACT.createObjectNode().put("n", value.asText());
        if (value.isArray()) {
            ArrayNode items = EXACT.createArrayNode();
            value.forEach(item -> items.add(told(item)));
            return EXACT.createObjectNode().set("a", items);
        }
        if (!value.isObject()) return value;
        ArrayNode members = EXACT.createArrayNode();
        value.properties()
                .forEach(one -> members.addArray().add(one.getKey()).add(told(one.getValue())));
        return EXACT.createObjectNode().set("o", members);
    }

    private static JsonNode call(JsonMapper mapper, byte[] body) throws IOException {
        Call call = mapper.readValue(body, Call.class);
        Params params = call.params == null ? new Params() : call.params;
        Meta meta = params.meta == null ? new Meta() : params.meta;
        ObjectNode value = EXACT.createObjectNode();
        value.set("id", told(call.id));
        value.put("method", call.method).put("name", params.name).put("version", meta.version);
        value.set("arguments", told(params.arguments));
        value.set("progressToken", told(meta.progressToken));
        return value;
    }

    private static ObjectNode reading(Reader reader, byte[] body) {
        ObjectNode reading = EXACT.createObjectNode();
        try {
            JsonNode value = reader.read(body);
            reading.put("ok", true).set("value", value);
        } catch (IOException refused) {
            reading.put("ok", false);
        }
        return reading;
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] body = HexFormat.of().parseHex(line);
            ObjectNode all = EXACT.createObjectNode();
            all.set("Jackson", reading(bytes -> told(EXACT.readTree(bytes)), body));
            all.set("Jackson, structures", reading(bytes -> call(EXACT, bytes), body));
            all.set("Jackson in any case, structures", reading(bytes -> call(FOLDING, bytes), body));
            out.println(EXACT.writeValueAsString(all));
        }
        out.flush();
    }
}
