// One client of the Go SDK: lists, calls, asks for what is hidden, and prints what came back.
// Reads its order from the environment as JSON, prints one line of JSON, judges nothing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	sdkModule   = "github.com/modelcontextprotocol/go-sdk"
	callTimeout = 60 * time.Second
)

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

type order struct {
	URL     string `json:"url"`
	Token   string `json:"token"`
	Mode    string `json:"mode"`
	Call    call   `json:"call"`
	Leak    call   `json:"leak"`
	Hidden  string `json:"hidden"`
	Unknown string `json:"unknown"`
}

type outcome struct {
	SDK      string   `json:"sdk"`
	Protocol string   `json:"protocol"`
	Listed   []string `json:"listed"`
	Called   string   `json:"called"`
	Leaked   string   `json:"leaked"`
	Hidden   string   `json:"hidden"`
	Unknown  string   `json:"unknown"`
}

type bearer struct{ token string }

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	own := request.Clone(request.Context())
	own.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(own)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var given order
	if err := json.Unmarshal([]byte(os.Getenv("CLIENT_ORDER")), &given); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1.0.0"}, nil)
	transport := &mcp.StreamableClientTransport{
		Endpoint:   given.URL,
		HTTPClient: &http.Client{Transport: bearer{given.Token}},
	}
	var options *mcp.ClientSessionOptions
	if given.Mode != "auto" {
		options = &mcp.ClientSessionOptions{ProtocolVersion: given.Mode}
	}
	session, err := client.Connect(ctx, transport, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer session.Close()
	found := outcome{SDK: sdkVersion(), Protocol: session.InitializeResult().ProtocolVersion}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		found.Listed = append(found.Listed, tool.Name)
	}
	if found.Called, err = textOf(ctx, session, given.Call); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	if found.Leaked, err = textOf(ctx, session, given.Leak); err != nil {
		return fmt.Errorf("leak: %w", err)
	}
	found.Hidden = refusalOf(ctx, session, given.Hidden)
	found.Unknown = refusalOf(ctx, session, given.Unknown)
	return json.NewEncoder(os.Stdout).Encode(found)
}

func textOf(ctx context.Context, session *mcp.ClientSession, wanted call) (string, error) {
	params := &mcp.CallToolParams{Name: wanted.Name, Arguments: wanted.Arguments}
	result, err := session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, block := range result.Content {
		if one, ok := block.(*mcp.TextContent); ok {
			text.WriteString(one.Text)
		}
	}
	return text.String(), nil
}

func refusalOf(ctx context.Context, session *mcp.ClientSession, name string) string {
	text, err := textOf(ctx, session, call{Name: name, Arguments: map[string]any{}})
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		return "result " + text
	case errors.As(err, &refused):
		return fmt.Sprintf("%d %s", refused.Code, refused.Message)
	default:
		return "error " + err.Error()
	}
}

func sdkVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == sdkModule {
			return module.Version
		}
	}
	return "unknown"
}
