// Reads bodies as Go does: one in hexadecimal a line, one line of JSON back with what each parser read.
// Into structures, encoding/json takes a member of another case for the one that is named.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"unicode"

	segmentio "github.com/segmentio/encoding/json"
)

const maxLineBytes = 8 << 20

type call struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
			Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

type reading struct {
	OK    bool `json:"ok"`
	Value any  `json:"value,omitempty"`
}

func told(value any) any {
	switch one := value.(type) {
	case json.Number:
		return map[string]any{"n": one.String()}
	case float64:
		return map[string]any{"n": strconv.FormatFloat(one, 'g', -1, 64)}
	case []any:
		items := make([]any, 0, len(one))
		for _, item := range one {
			items = append(items, told(item))
		}
		return map[string]any{"a": items}
	case map[string]any:
		names := make([]string, 0, len(one))
		for name := range one {
			names = append(names, name)
		}
		sort.Strings(names)
		members := make([]any, 0, len(one))
		for _, name := range names {
			members = append(members, []any{name, told(one[name])})
		}
		return map[string]any{"o": members}
	default:
		return value
	}
}

func anything(body []byte, unmarshal func([]byte, any) error) reading {
	var value any
	if err := unmarshal(body, &value); err != nil {
		return reading{}
	}
	return reading{OK: true, Value: told(value)}
}

// structured tells a call in the form of the message that it was taken from.
func structured(body []byte, unmarshal func([]byte, any) error) reading {
	var one call
	if err := unmarshal(body, &one); err != nil {
		return reading{}
	}
	isRead := true
	raw := func(text json.RawMessage) any {
		if text == nil {
			return nil
		}
		read := anything(text, json.Unmarshal)
		// A program that cannot read a member, such as a number that no float64 holds, refuses the message.
		isRead = isRead && read.OK
		return read.Value
	}
	value := map[string]any{
		"id": raw(one.ID), "method": one.Method, "name": one.Params.Name,
		"arguments": raw(one.Params.Arguments), "progressToken": raw(one.Params.Meta.ProgressToken),
		"version": one.Params.Meta.Version,
	}
	if !isRead {
		return reading{}
	}
	return reading{OK: true, Value: value}
}

func exact(body []byte, into any) error {
	decoder := segmentio.NewDecoder(bytes.NewReader(body))
	decoder.DontMatchCaseInsensitiveStructFields()
	return decoder.Decode(into)
}

// smallestFold is the smallest of the code points that Go takes for one when it folds case.
func smallestFold(point rune) rune {
	smallest := point
	for next := unicode.SimpleFold(point); next != point; next = unicode.SimpleFold(next) {
		smallest = min(smallest, next)
	}
	return smallest
}

func printFolds() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for point := rune(0); point <= unicode.MaxRune; point++ {
		if smallest := smallestFold(point); smallest != point {
			fmt.Fprintf(out, "%d %d\n", point, smallest)
		}
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "folds" {
		printFolds()
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLineBytes)
	encoder := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		body, err := hex.DecodeString(lines.Text())
		if err != nil {
			log.Fatal(err)
		}
		err = encoder.Encode(map[string]reading{
			"Go encoding/json":             anything(body, json.Unmarshal),
			"Go encoding/json, structures": structured(body, json.Unmarshal),
			"Go SDK, structures":           structured(body, exact),
		})
		if err != nil {
			log.Fatal(err)
		}
	}
}
