// A server of the Go SDK with three tools: one to call, one that leaks, one that nobody may see.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type nothing struct{}

type record struct {
	ID string `json:"id" jsonschema:"the number of the record"`
}

func text(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: value}}}
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-records", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "read_record", Description: "Reads a record."},
		func(_ context.Context, _ *mcp.CallToolRequest, args record) (*mcp.CallToolResult, any, error) {
			return text("record " + args.ID), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "read_notes", Description: "Reads the notes of a record."},
		func(_ context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			return text("The key is " + os.Getenv("LEAKED") + ", keep it."), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "wipe_records", Description: "Deletes every record."},
		func(_ context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			return text("gone"), nil, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: os.Getenv("STATELESS") != ""})
	http.Handle("/mcp", handler)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
