package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/standin"
)

var turns = flag.Int("turns", 0, "how many random turns TestWires has on each interface; 0 is 12, and 60 with ACP_TESTS=all")

// odd are schemas that some service refuses as they are.
var odd = []string{
	`{"oneOf":[{"properties":{"id":{"type":"string"}},"required":["id"]},{"$ref":"#/$defs/N"}],"$defs":{"N":{"properties":{"name":{"type":["string","null"]}}}}}`,
	`{"properties":{"a":{"type":"array"},"b":{"const":1},"c":{"type":"any"},"d":true}}`,
	`{"type":"object","anyOf":[{"required":["x"]},{"required":["y"]}],"properties":{"x":{"$ref":"https://example.com/x"},"y":{"enum":[1,null,"z"]}},"additionalProperties":false}`,
	`{"type":"object","properties":{"$filter":{"type":"string"}},"required":["$filter"]}`,
	`{"type":"object","properties":{"n":{"$ref":"#/definitions/N"}},"definitions":{"N":{"type":"object","properties":{"next":{"$ref":"#/definitions/N"}}}}}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"integer","minimum":0,"exclusiveMinimum":true,"required":true}},"if":{},"then":{"properties":{"z":{}}}}`,
	`{"type":"string"}`, `true`, `{"type":["object","null"],"properties":{"a b/c":{"type":"string","pattern":"(?=x)"}}}`,
	`{"allOf":[{"type":"object","properties":{"a":{"items":[{"type":"string"}],"type":"array"}}},{"properties":{"b":{"not":{"type":"null"}}}}]}`,
}

// pictured are images at the bounds of the interfaces, over them and damaged.
func pictured(t *testing.T) map[string][]byte {
	wide := drawn(t, 8000, 1, false)
	all := map[string][]byte{
		"pixel": modeltest.Pixel().Data, "2000": drawn(t, 2000, 2, false), "2001": drawn(t, 2001, 2, false), "8000": wide, "8001": drawn(t, 2, 8001, false),
		"cut": wide[:len(wide)-20], "head": wide[:8], "none": []byte("no image"), "gif": []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"),
		"webp": []byte("RIFF\x18\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x02\x00\x02\x00xx"),
	}
	return all
}

// TestWires: on each interface, with a service that refuses what the real ones refuse and now and then what is new,
// each of many random turns with images at the bounds and over them and with odd schemas ends well.
func TestWires(t *testing.T) {
	n := *turns
	if n == 0 {
		n = 12
		if long.All() {
			n = 60
		}
	}
	names := []string{"pixel", "2000", "2001", "8000", "8001", "cut", "head", "none", "gif", "webp"}
	all := pictured(t)
	for _, api := range []string{"messages", "responses", "chat", "openai", "ollama"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(len(api)), 5))
			var mu sync.Mutex
			poison := false // the service refuses what says so, though nothing is wrong with it
			service := standin.New(standin.Options{Strict: true, Plain: api == "chat", Script: func(r *standin.Request) standin.Step {
				mu.Lock()
				defer mu.Unlock()
				return wired(r, rng, &poison)
			}})
			defer service.Close()
			m, err := modelAt(api + " " + service.URL)
			if err != nil {
				t.Fatal(err)
			}
			var tools []*mcp.Tool
			for i, s := range odd {
				tools = append(tools, &mcp.Tool{Name: fmt.Sprint("odd", i), InputSchema: json.RawMessage(s)})
			}
			k := start(t, 2, func(k *talk) {
				k.model = m
				k.client.MCP = func(_ context.Context, c *acp.MCPCall) (json.RawMessage, error) {
					if c.Method == "tools/list" {
						return json.Marshal(mcp.ListToolsResult{Tools: tools})
					}
					mu.Lock()
					defer mu.Unlock()
					name := names[rng.IntN(len(names))]
					return json.Marshal(mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here"}, &mcp.ImageContent{MIMEType: "image/png", Data: all[name]}}})
				}
			})
			for name, data := range all {
				k.write(name+".png", string(data))
			}
			servers := []acp.MCPServer{&acp.MCPServerACP{Name: "far", ServerID: "far"}}
			if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
				t.Fatal(err)
			}
			k.tell("/mode full")
			failed, mended := -2, 0
			for i := range n {
				var blocks []acp.ContentBlock
				for range rng.IntN(3) {
					name := names[rng.IntN(len(names))]
					blocks = append(blocks, &acp.ImageContent{MIMEType: "image/png", Data: base64.StdEncoding.EncodeToString(all[name])})
				}
				mu.Lock()
				poison = rng.IntN(4) == 0
				mu.Unlock()
				blocks = append(blocks, acp.Text(fmt.Sprintf("Turn %d.", i)))
				_, err := k.session.Prompt(t.Context(), blocks...).Wait()
				got := k.taken()
				switch {
				case err == nil && strings.Contains(got, "answer"):
				case err != nil && strings.Contains(err.Error(), "fails as asked") && failed != i-1:
					failed = i // nothing was new that could be left out; the session continues
				default:
					t.Fatalf("turn %d: %v\n%s\nrefused: %v", i, err, got, service.Faults())
				}
				mended += strings.Count(got, "left out of the conversation")
				if i%50 == 20 {
					id := k.session.ID()
					if err := k.session.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					k.connect()
					if k.session, err = k.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
						t.Fatal(err)
					}
				}
				if i%25 == 24 { // or else requests get long
					k.tell("/compact")
				}
			}
			if mended == 0 && n > 100 {
				t.Error("nothing was ever left out")
			}
			if faults := service.Faults(); len(faults) > 0 {
				t.Errorf("%d requests were refused by the rules of the service, such as %s", len(faults), faults[0])
			}
		})
	}
}

// wired answers as a model that reads images, by itself and with a server, twice in a turn. Poisoned, the service
// refuses requests with an image that is new once in a while.
func wired(r *standin.Request, rng *rand.Rand, poison *bool) standin.Step {
	calls := func() (all []standin.Call) {
		names := []string{"pixel", "2000", "2001", "8000", "8001", "cut", "head", "none", "gif", "webp"}
		for range 1 + rng.IntN(3) {
			all = append(all, standin.Call{Name: "read", Args: map[string]any{"path": names[rng.IntN(len(names))] + ".png", "from": 1 + rng.IntN(1e9)}})
		}
		for _, name := range r.Tools {
			if strings.HasPrefix(name, "mcp__far__odd") && rng.IntN(6) == 0 {
				all = append(all, standin.Call{Name: name, Args: map[string]any{"a": nil, "z": rng.IntN(1e9)}})
			}
		}
		return all
	}
	last := r.Users[len(r.Users)-1]
	if *poison && rng.IntN(2) == 0 && !strings.Contains(string(r.Body), "since the provider refused") {
		*poison = false
		return standin.Step{Fail: true}
	}
	if !strings.Contains(last, "summary") && rng.IntN(2) == 0 {
		return standin.Step{Text: []string{"Let me look: "}, Calls: calls()}
	}
	return standin.Step{Text: []string{"answer"}}
}
