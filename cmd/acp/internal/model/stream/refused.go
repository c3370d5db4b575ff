package stream

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// rawBytes bounds what an error keeps of a body.
const rawBytes = 4 << 10

// explain completes what an interface made of an answer that is not a stream.
func explain(e *model.Error, resp *http.Response, body []byte) *model.Error {
	if e == nil {
		e = &model.Error{}
	}
	e.Status = resp.StatusCode
	e.Raw = body[:min(len(body), rawBytes)]
	if e.RetryAfter == 0 {
		e.RetryAfter = RetryAfter(resp.Header, time.Now())
	}
	if e.Kind == "" {
		e.Kind = KindOf(resp.StatusCode)
	}
	if e.Message == "" {
		e.Message = describe(resp, body)
	}
	e.Message = strings.Join(strings.Fields(e.Message), " ")
	return e
}

// KindOf returns what kind of trouble a status of HTTP means.
func KindOf(status int) model.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return model.KindAuth
	case http.StatusPaymentRequired:
		return model.KindQuota
	case http.StatusTooManyRequests:
		return model.KindRate
	case http.StatusRequestEntityTooLarge:
		return model.KindOverflow
	case http.StatusRequestTimeout, http.StatusConflict:
		return model.KindOverloaded
	}
	switch {
	case status >= 500:
		return model.KindOverloaded // 529 among them
	case status >= 400:
		return model.KindRequest
	}
	return model.KindAnswer
}

// describe says what an answer is that has no message for people.
func describe(resp *http.Response, body []byte) string {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Sprintf("the answer leads to another address, %q, which is not followed", resp.Header.Get("Location"))
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return fmt.Sprintf("a web page (%s) instead of an answer", http.StatusText(resp.StatusCode))
	case resp.StatusCode == http.StatusOK:
		return "not a stream of events"
	case len(bytes.TrimSpace(body)) == 0:
		return "an empty answer"
	}
	return strings.ToValidUTF8(string(body[:min(len(body), 300)]), "\uFFFD")
}

// RetryAfter returns how long a provider wants to be left alone, as the headers
// retry-after-ms and Retry-After say; 0 if they do not.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		if s > 0 && s < 1e6 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	if at, err := http.ParseTime(after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// overflows are what providers say when a conversation does not fit into the window. They
// have no status or code for it in common.
var overflows = []string{
	"prompt is too long",
	"context length",
	"context_length_exceeded",
	"context window",
	"context size",
	"maximum context",
	"max_model_len",
	"maximum model length",
	"input token count",
	"input is too long",
	"too many tokens",
	"reduce the length of the messages",
	"request too large",
	"exceeds the maximum number of tokens",
}

// Overflow reports whether the message of an error says that the conversation does not
// fit into the window.
func Overflow(message string) bool {
	message = strings.ToLower(message)
	for _, s := range overflows {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}
