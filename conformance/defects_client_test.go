package conformance

var _ = defects(Client, map[string]defect{
	"fs/not-offered": onRequest("initialize", unset("params.clientCapabilities")),
	"fs/missing":     onRequest("fs/read_text_file", result(`{"content":""}`)),
})
