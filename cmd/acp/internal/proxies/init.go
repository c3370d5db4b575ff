package proxies

import (
	"encoding/json"

	"github.com/goacp/acp"
)

// initRequest returns the params of a handshake.
func initRequest(in *acp.ProxyInit) json.RawMessage {
	var b []byte
	switch {
	case in.RequestV1 != nil:
		b, _ = in.RequestV1.AppendJSON(nil)
	case in.RequestV2 != nil:
		b, _ = in.RequestV2.AppendJSON(nil)
	}
	return b
}

// initResult returns the result of a handshake, or nil.
func initResult(in *acp.ProxyInit) json.RawMessage {
	var b []byte
	switch {
	case in.ResultV1 != nil:
		b, _ = in.ResultV1.AppendJSON(nil)
	case in.ResultV2 != nil:
		b, _ = in.ResultV2.AppendJSON(nil)
	}
	return b
}
