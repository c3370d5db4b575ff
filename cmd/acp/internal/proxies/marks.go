package proxies

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/goacp/acp/trace"
)

// minLine is how long a line of a secret with several lines is to be looked for by itself.
const minLine = 16

// minPart is how many bytes of a secret at the end or the beginning of cut output are one.
const minPart = 6

// marks are the secrets of a conversation, and what stands in place of each.
type marks struct {
	known   []string // values, longest first
	replace *strings.Replacer
	pattern *regexp.Regexp // of marks
	byFirst [256][]string  // the forms of known values, by their first byte
	tag     string         // what marks of this conversation have in them, so that nobody else can write them

	mu       sync.Mutex
	redactor trace.Redactor
	secrets  map[string]string // by mark
	marks    map[string]string // by secret
}

func newMarks(values []string) *marks {
	m := &marks{tag: strings.ToLower(rand.Text()[:6]), secrets: map[string]string{}, marks: map[string]string{}}
	m.pattern = regexp.MustCompile(`«secret \d+ ` + m.tag + `»`)
	m.redactor.Mark = func(secret []byte) []byte { return []byte(m.mark(string(secret))) }
	for _, v := range values {
		m.known = append(m.known, v)
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); line != v && len(line) >= minLine {
				m.known = append(m.known, line)
			}
		}
	}
	m.known = inOrder(m.known)
	var forms []string
	for _, v := range m.known {
		forms = append(forms, formsOf(v)...)
	}
	forms = inOrder(forms)
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, m.mark(form))
		m.byFirst[form[0]] = append(m.byFirst[form[0]], form)
	}
	m.replace = strings.NewReplacer(pairs...)
	return m
}

// inOrder returns texts once each, the longest first.
func inOrder(texts []string) []string {
	sort.Slice(texts, func(i, j int) bool {
		a, b := texts[i], texts[j]
		return len(a) > len(b) || len(a) == len(b) && a < b
	})
	return slices.Compact(texts)
}

// formsOf returns a value in the forms in which it may occur. In base64 it is what does not depend on what is
// around it.
func formsOf(v string) []string {
	digits := hex.EncodeToString([]byte(v))
	forms := []string{v, digits, strings.ToUpper(digits), url.QueryEscape(v), url.PathEscape(v)}
	if quoted, err := json.Marshal(v); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := enc.EncodeToString(append(make([]byte, shift), v...))
			from, to := (shift*8+5)/6, (shift+len(v))*8/6
			forms = append(forms, text[from:to])
		}
	}
	return slices.DeleteFunc(forms, func(form string) bool { return len(form) < minSecret })
}

// mark returns what stands in place of a secret. A mark is its own. Beyond the bound, secrets share one that does
// not become a secret again.
func (m *marks) mark(secret string) string {
	if m.pattern.FindString(secret) == secret && secret != "" {
		return secret
	}
	if mark, ok := m.marks[secret]; ok {
		return mark
	}
	if len(m.marks) >= maxSecrets {
		return "«secret»"
	}
	mark := fmt.Sprintf("«secret %d %s»", len(m.marks)+1, m.tag)
	m.marks[secret], m.secrets[mark] = mark, secret
	return mark
}

// text returns a text without secrets.
func (m *marks) text(s string) string {
	if len(s) < minSecret {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.redactor.Text(m.replace.Replace(m.lines(s)))
}

// wrapped is base64 in several lines, also as a string of JSON has them; breaks are their ends.
var (
	wrapped = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[A-Za-z0-9+/_-]{4,}(?:(?:\r?\n|(?:\\r)?\\n)[ \t]*[A-Za-z0-9+/_-]{2,}=*)+`)
	})
	breaks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:\r?\n|(?:\\r)?\\n)[ \t]*`) })
)

// lines returns a text in which base64 that has a secret is in one line, so that it is found.
func (m *marks) lines(s string) string {
	if len(m.known) == 0 || !strings.Contains(s, "\n") && !strings.Contains(s, `\n`) {
		return s
	}
	return wrapped().ReplaceAllStringFunc(s, func(lines string) string {
		whole := breaks().ReplaceAllString(lines, "")
		if is := m.replace.Replace(whole); is != whole && m.replace.Replace(lines) == lines {
			return is
		}
		return lines
	})
}

// in returns the marks in a text.
func (m *marks) in(s string) []string {
	if !strings.Contains(s, m.tag) {
		return nil
	}
	return m.pattern.FindAllString(s, -1)
}

// restore returns a text with the secrets in place of their marks.
func (m *marks) restore(s string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 3 { // a secret may have been found around a mark
		next := m.pattern.ReplaceAllStringFunc(s, func(mark string) string {
			if secret, ok := m.secrets[mark]; ok {
				return secret
			}
			return mark
		})
		if next == s {
			break
		}
		s = next
	}
	return s
}

// decode reads JSON so that nothing of a number is lost.
func decode(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// whole returns JSON without secrets in any of its texts. If there is none, that is raw itself.
func (m *marks) whole(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return raw, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	changed := false
	v = m.value("", v, &changed)
	if !changed && m.replace.Replace(string(raw)) == string(raw) { // a member that occurs twice was read once
		return raw, nil
	}
	return json.Marshal(v)
}

// members is whole for some members of an object.
func (m *marks) members(raw json.RawMessage, names ...string) (json.RawMessage, error) {
	v, err := decode(raw)
	object, ok := v.(map[string]any)
	if err != nil || !ok {
		return raw, err
	}
	changed := false
	for _, name := range names {
		if member, ok := object[name]; ok {
			object[name] = m.value(name, member, &changed)
		}
	}
	if !changed {
		return raw, nil
	}
	return json.Marshal(object)
}

// ids are members whose text means something to programs: it is compared with values only.
var ids = []string{
	"sessionId", "toolCallId", "messageId", "terminalId", "optionId", "requestId",
	"type", "mimeType", "data", "blob", "method",
}

// value returns a value of JSON without secrets.
func (m *marks) value(name string, v any, changed *bool) any {
	switch v := v.(type) {
	case string:
		var is string
		if slices.Contains(ids, name) {
			is = m.replace.Replace(m.lines(v))
		} else {
			is = m.text(v)
		}
		*changed = *changed || is != v
		return is
	case []any:
		for i := range v {
			v[i] = m.value("", v[i], changed)
		}
		return m.joined(v, changed)
	case map[string]any:
		for _, key := range slices.Collect(keysOf(v)) {
			name := key
			if _, terminal := v["terminal_id"]; terminal && key == "data" {
				name = "output" // which is text here
			}
			is := m.value(name, v[key], changed)
			if other := m.replace.Replace(key); other != key {
				delete(v, key)
				key, *changed = other, true
			}
			v[key] = is
		}
	}
	return v
}

func keysOf(v map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range v {
			if !yield(key) {
				return
			}
		}
	}
}

// joined makes one block of text of those that follow each other, if they have a secret together that none of them
// has alone.
func (m *marks) joined(list []any, changed *bool) []any {
	textOf := func(v any) (string, bool) {
		block, ok := v.(map[string]any)
		if !ok || block["type"] != "text" {
			return "", false
		}
		text, ok := block["text"].(string)
		return text, ok
	}
	for from := 0; from < len(list); from++ {
		to, all := from, ""
		for ; to < len(list); to++ {
			text, ok := textOf(list[to])
			if !ok {
				break
			}
			all += text
		}
		if to-from < 2 {
			continue
		}
		if is := m.text(all); is != all {
			list[from].(map[string]any)["text"] = is
			list = append(list[:from+1], list[to:]...)
			*changed = true
			continue
		}
		from = to
	}
	return list
}

// output is whole for the output of a terminal, which may begin or end in the middle of a secret.
func (m *marks) output(raw json.RawMessage) (json.RawMessage, error) {
	raw, err := m.whole(raw)
	if err != nil {
		return nil, err
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	object, _ := v.(map[string]any)
	text, ok := object["output"].(string)
	if !ok {
		return raw, nil
	}
	is := text
	for _, secret := range m.known {
		for n := min(len(secret)-1, len(is)); n >= minPart; n-- {
			if strings.HasSuffix(is, secret[:n]) {
				is = is[:len(is)-n] + "«secret»"
				break
			}
		}
		for n := min(len(secret)-1, len(is)); n >= minPart; n-- {
			if strings.HasPrefix(is, secret[len(secret)-n:]) {
				is = "«secret»" + is[n:]
				break
			}
		}
	}
	if is == text {
		return raw, nil
	}
	object["output"] = is
	return json.Marshal(object)
}

// readRegular reads a regular file, and of a longer one the first most+1 bytes.
func readRegular(name string, most int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readFile(f, most)
}

// readFile is [readRegular] of a file that is open.
func readFile(f *os.File, most int) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", f.Name())
	}
	return io.ReadAll(io.LimitReader(f, int64(most)+1))
}
