package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// An errorBody is what a server says of a failure. Code is a string or a number, and
// servers differ in which of the fields they use.
type errorBody struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
}

// UnmarshalJSON reads an object, or a string, which some servers have in its place.
func (b *errorBody) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &b.Message)
	}
	type plain errorBody
	return json.Unmarshal(data, (*plain)(b))
}

// kinds are the words that servers have for failures.
var kinds = map[string]model.Kind{
	"invalid_api_key":          model.KindAuth,
	"authentication_error":     model.KindAuth,
	"permission_denied":        model.KindAuth,
	"insufficient_quota":       model.KindQuota,
	"billing_hard_limit":       model.KindQuota,
	"rate_limit_exceeded":      model.KindRate,
	"rate_limit_error":         model.KindRate,
	"resource_exhausted":       model.KindRate,
	"context_length_exceeded":  model.KindOverflow,
	"exceed_context_size":      model.KindOverflow,
	"content_filter":           model.KindRefused,
	"content_policy_violation": model.KindRefused,
	"invalid_prompt":           model.KindRefused,
	"server_error":             model.KindOverloaded,
	"server_is_overloaded":     model.KindOverloaded,
	"slow_down":                model.KindRate,
	"overloaded":               model.KindOverloaded,
	"vector_store_timeout":     model.KindOverloaded,
	"model_not_found":          model.KindRequest,
	"invalid_request_error":    model.KindRequest,
}

// explain returns what is known of a failure, without a kind if its words are not known.
func (b *errorBody) explain() *model.Error {
	code := strings.Trim(string(b.Code), `"`)
	if code == "null" {
		code = ""
	}
	e := &model.Error{Code: code, Message: strings.Join(strings.Fields(b.Message), " ")}
	if e.Code == "" {
		e.Code = b.Type
	}
	for _, word := range []string{code, b.Type} {
		word = strings.TrimSuffix(strings.ToLower(word), "_error_error")
		if k, ok := kinds[word]; ok {
			e.Kind = k
			break
		}
	}
	if e.Kind == "" || e.Kind == model.KindRequest {
		switch n := json.Number(code); {
		case stream.Overflow(b.Message):
			e.Kind = model.KindOverflow
		case e.Kind == "" && len(code) == 3:
			if status, err := n.Int64(); err == nil && status >= 400 {
				e.Kind = stream.KindOf(int(status))
			}
		}
	}
	return e
}

// failure returns the error that an event says.
func (b *errorBody) failure() *model.Error {
	e := b.explain()
	switch word := strings.ToLower(e.Code); {
	case e.Kind != "":
	case strings.HasSuffix(word, "policy_violation"):
		e.Kind = model.KindRefused
	case strings.HasPrefix(word, "invalid_"), strings.HasPrefix(word, "unsupported_"), strings.HasPrefix(word, "image_"):
		e.Kind = model.KindRequest
	default:
		e.Kind, e.Once = model.KindOverloaded, word != "" && word != "error"
	}
	if e.Message == "" {
		e.Message = "the provider says that it failed, and not why"
	}
	return e
}

// explain returns what an answer means that is not a stream; nil if only its status says
// something. Servers wrap their errors differently.
func explain(status int, _ http.Header, body []byte) *model.Error {
	var b struct {
		Error   *errorBody      `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Object  string          `json:"object"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if len(body) > 0 && body[0] == '[' { // Gemini sends a list with one
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	if json.Unmarshal(body, &b) != nil {
		return nil
	}
	switch {
	case b.Error != nil:
	case b.Message != "":
		b.Error = &errorBody{Message: b.Message, Type: b.Type, Code: b.Code}
	case len(b.Detail) > 0:
		b.Error = &errorBody{Message: strings.Trim(string(b.Detail), `"`)}
	default:
		return nil
	}
	e := b.Error.explain()
	if e.Kind == model.KindRequest || e.Kind == model.KindOverloaded {
		if k := stream.KindOf(status); k != model.KindAnswer {
			e.Kind = k // which is more exact
		}
	}
	return e
}
