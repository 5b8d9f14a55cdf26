// One client of the Java SDK: lists, calls, asks for what is hidden, and prints what came back.
// Reads its order from the environment as JSON, prints one line of JSON, judges nothing.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ListToolsResult;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import java.net.URI;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.Map;
import java.util.stream.Collectors;

public final class Client {
    private static final JsonMapper JSON = new JsonMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private static String textOf(CallToolResult result) {
        return result.content().stream()
                .map(block -> block instanceof TextContent text ? text.text() : "")
                .collect(Collectors.joining());
    }

    private static CallToolResult call(McpSyncClient client, String name, JsonNode arguments) {
        Map<String, Object> given = Map.of();
        if (arguments != null) {
            given = JSON.convertValue(arguments, JSON.getTypeFactory()
                    .constructMapType(Map.class, String.class, Object.class));
        }
        return client.callTool(CallToolRequest.builder(name).arguments(given).build());
    }

    private static String refusalOf(McpSyncClient client, String name) {
        try {
            return "result " + textOf(call(client, name, null));
        } catch (McpError error) {
            var told = error.getJsonRpcError();
            return told == null ? error.getMessage() : told.code() + " " + told.message();
        }
    }

    private static ArrayNode namesOf(McpSyncClient client) {
        ArrayNode names = JSON.createArrayNode();
        String cursor = null;
        do {
            ListToolsResult page = client.listTools(cursor);
            page.tools().forEach(tool -> names.add(tool.name()));
            cursor = page.nextCursor();
        } while (cursor != null);
        return names;
    }

    public static void main(String[] args) throws Exception {
        JsonNode order = JSON.readTree(System.getenv("CLIENT_ORDER"));
        URI url = URI.create(order.get("url").asText());
        var transport = HttpClientStreamableHttpTransport.builder(url.resolve("/").toString())
                .endpoint(url.getPath())
                .requestBuilder(HttpRequest.newBuilder()
                        .header("authorization", "Bearer " + order.get("token").asText()))
                .build();
        ObjectNode found = JSON.createObjectNode();
        try (McpSyncClient client = McpClient.sync(transport).requestTimeout(PATIENCE).build()) {
            var opened = client.initialize();
            found.put("protocol", opened.protocolVersion());
            found.set("listed", namesOf(client));
            JsonNode call = order.get("call");
            found.put("called", textOf(call(client, call.get("name").asText(), call.get("arguments"))));
            JsonNode leak = order.get("leak");
            found.put("leaked", textOf(call(client, leak.get("name").asText(), leak.get("arguments"))));
            found.put("hidden", refusalOf(client, order.get("hidden").asText()));
            found.put("unknown", refusalOf(client, order.get("unknown").asText()));
        }
        System.out.println(JSON.writeValueAsString(found));
        System.exit(0);
    }
}
