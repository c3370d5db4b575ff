package conformance

import "strings"

var _ = defects(Client, map[string]defect{
	"initialize/first":           onRequest("initialize", set("params.protocolVersion", `"2"`)),
	"initialize/waits":           onRequest("initialize", behind(`{"jsonrpc":"2.0","id":"early","method":"session/new","params":{"cwd":"/check","mcpServers":[]}}`)),
	"initialize/unknown-members": onReply("initialize", when(func(f *flying) bool { return strings.Contains(f.line, "_unknown") }, hangUp)),

	"permission/answered": onReply("session/request_permission", set("result.outcome", `{"outcome":"selected","optionId":"always"}`)),
	"permission/two":      onReply("session/request_permission", when(func(f *flying) bool { return f.n == 1 }, drop)),

	"fs/not-offered": onRequest("initialize", unset("params.clientCapabilities")),
	"fs/missing":     onRequest("fs/read_text_file", result(`{"content":""}`)),
})
