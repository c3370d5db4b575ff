package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// serveMCP is an MCP server with sixty tools, or with one whose schema is odd.
func serveMCP(name string, r io.Reader, w io.Writer) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	enc := json.NewEncoder(w)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || req.ID == nil {
			continue
		}
		var result any
		switch req.Method {
		case "initialize":
			result = object{"protocolVersion": req.Params.Version, "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "sixty", "version": "1"}}
		case "tools/list":
			var tools []object
			if name == "odd" {
				one := func(name string) object {
					return object{"type": "object", "properties": object{name: object{"type": "string"}}, "required": []string{name}}
				}
				result = object{"tools": []object{{"name": "find", "description": "Finds something.", "inputSchema": object{"type": "object", "oneOf": []object{one("id"), one("name")}}}}}
				break
			}
			for i := range 60 {
				tools = append(tools, object{
					"name": fmt.Sprintf("tool_%d", i), "description": fmt.Sprintf("Does the thing number %d. ", i) + strings.Repeat("It takes care of what goes with it. ", 12),
					"inputSchema": object{"type": "object", "properties": object{
						"id": object{"type": "string", "description": "which one"}, "count": object{"type": "integer", "description": "how many"},
					}, "required": []string{"id"}},
				})
			}
			result = object{"tools": tools}
		case "tools/call":
			result = object{"content": []object{{"type": "text", "text": "done"}}}
		default:
			_ = enc.Encode(object{"jsonrpc": "2.0", "id": req.ID, "error": object{"code": -32601, "message": "there is no such method"}})
			continue
		}
		if enc.Encode(object{"jsonrpc": "2.0", "id": req.ID, "result": result}) != nil {
			return
		}
	}
}
