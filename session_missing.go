package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// IsSessionNotFound reports whether err, which an agent answered to a request to
// load or to resume a session, says that the agent does not have that session.
//
// The protocol has a code for that, [jsonrpc.ErrResourceNotFound], which
// [SessionNotFound] has. Many agents use another one, most often
// [jsonrpc.ErrInvalidParams] or [jsonrpc.ErrInternal], and say it in words. For
// those IsSessionNotFound is a heuristic: it reads the English text of the
// message and of the data, up to 16 KiB, for a session, conversation or thread
// that is unknown, invalid or not found. It can be wrong in both directions, so
// use it where a new session is an acceptable answer to a lost one. It tells
// nothing about the answers to other requests.
//
// An error that no peer answered with, an end of the connection for example, is
// never one.
func IsSessionNotFound(err error) bool {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return false
	}
	switch said.Code {
	case jsonrpc.CodeResourceNotFound:
		return true
	case jsonrpc.CodeAuthRequired, jsonrpc.CodeMethodNotFound, jsonrpc.CodeRequestCancelled, jsonrpc.CodeUnsupportedVersion:
		return false
	}
	text, field := errorText(said)
	phrases := sessionPhrases()
	switch {
	case phrases.there.MatchString(text):
		return false
	case phrases.gone.MatchString(text):
		return true
	}
	return field && said.Code == jsonrpc.CodeInvalidParams
}

// maxErrorText bounds what is read of an error, in bytes.
const maxErrorText = 16 << 10

// errorText returns the words of an error, one saying to a line, and whether its
// data names the field with the session's id and no other.
func errorText(e *jsonrpc.Error) (text string, field bool) {
	b := new(strings.Builder)
	b.WriteString(cutText(e.Message, maxErrorText))
	d := json.NewDecoder(bytes.NewReader(e.Data))
	others := false
	for b.Len() < maxErrorText {
		token, err := d.Token()
		if err != nil {
			break
		}
		s, ok := token.(string)
		if !ok {
			continue
		}
		b.WriteByte('\n')
		b.WriteString(cutText(s, maxErrorText-b.Len()))
		switch strings.TrimPrefix(s, "params.") {
		case "sessionId":
			field = true
		case "cwd", "mcpServers", "additionalDirectories", "systemPrompt", "replayFrom":
			others = true
		}
	}
	return b.String(), field && !others
}

func cutText(s string, n int) string { return s[:min(len(s), max(n, 0))] }

// sessionPhrases are the words by which agents say that they do not have a
// session, and that they do.
var sessionPhrases = sync.OnceValue(func() (p struct{ gone, there *regexp.Regexp }) {
	const (
		subject = `(?:session|conversation|thread|rollout)`
		// What may stand between a session and what is said of it: its id.
		id      = `(?:[ _-]?(?:id|identifier|file))?(?: with(?: session)? (?:id|identifier))?[:=]?(?: ?["'<(\x60“‘]?[^\s"'>)\x60”’]{1,256}["'>)\x60”’]?)?`
		missing = `(?:was |is |could |can |does )?(?:not |n't |n’t )(?:be )?(?:found|exist|known|available)\b`
	)
	p.gone = regexp.MustCompile(`(?i)` + strings.Join([]string{
		`\b(?:unknown|no such|non-?existent|missing|expired) ` + subject, // unknown sessionId: x
		`\binvalid ` + subject + `[ _-]?(?:id|identifier)`,               // invalid session identifier "x"
		`\bno ` + subject + `s? (?:was |is )?(?:found|exists?|with|for|matches|matching)\b`,
		`\b` + subject + id + `,? ?` + missing,
		`\b` + subject + id + `,? ?(?:is |was )?(?:unknown|expired|no longer exists|does(?:n't|n’t) exist|has been (?:deleted|removed)|was (?:deleted|removed))\b`,
		`\b(?:not found|does not exist)[:,]? (?:the |a )?` + subject,
		`\b(?:could not|couldn't|cannot|can't|failed to|unable to) (?:find|locate) (?:the |a |any )?` + subject,
		`\b` + subject + `_?not_?found\b`, // SessionNotFound
	}, "|"))
	p.there = regexp.MustCompile(`(?i)\b(?:already|in use|locked|busy|still running)\b`)
	return p
})
