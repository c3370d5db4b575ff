package anthropic

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// An errorBody is what the provider says of a failure.
type errorBody struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// kinds are the provider's words for failures.
var kinds = map[string]model.Kind{
	"invalid_request_error": model.KindRequest,
	"authentication_error":  model.KindAuth,
	"permission_error":      model.KindAuth,
	"billing_error":         model.KindQuota,
	"not_found_error":       model.KindRequest,
	"request_too_large":     model.KindOverflow,
	"rate_limit_error":      model.KindRate,
	"timeout_error":         model.KindOverloaded,
	"api_error":             model.KindOverloaded,
	"overloaded_error":      model.KindOverloaded,
}

func (b *errorBody) explain() *model.Error {
	e := &model.Error{Kind: kinds[b.Type], Code: b.Type, Message: strings.Join(strings.Fields(b.Message), " ")}
	switch {
	case e.Kind == "":
		e.Kind, e.Once = model.KindOverloaded, b.Type != ""
	case e.Kind == model.KindRequest && stream.Overflow(b.Message):
		e.Kind = model.KindOverflow
	case e.Kind == model.KindRequest && strings.Contains(strings.ToLower(b.Message), "credit balance"):
		e.Kind = model.KindQuota
	}
	if e.Message == "" {
		e.Message = "the provider says that it failed, and not why"
	}
	return e
}

// explain returns what an answer means that is not a stream; nil if only its status says
// something.
func explain(_ int, _ http.Header, body []byte) *model.Error {
	var b struct {
		Error *errorBody `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil || b.Error == nil || b.Error.Type == "" {
		return nil
	}
	e := b.Error.explain()
	if _, ok := kinds[b.Error.Type]; !ok {
		e.Kind = "" // the status knows better
	}
	return e
}

// limits reads what the provider says is left.
func limits(h http.Header) *model.Limits {
	const prefix = "Anthropic-Ratelimit-"
	l := &model.Limits{Requests: -1, Tokens: -1}
	said := false
	number := func(to *int, name string) {
		if n, err := strconv.Atoi(h.Get(prefix + name)); err == nil && n >= 0 {
			*to, said = n, true
		}
	}
	number(&l.Requests, "Requests-Remaining")
	number(&l.Tokens, "Tokens-Remaining")
	if !said {
		return nil
	}
	if t, err := time.Parse(time.RFC3339, h.Get(prefix+"Tokens-Reset")); err == nil {
		l.Reset = t
	}
	return l
}
