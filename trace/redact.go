package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
)

// Bounds of what a [Redactor] remembers.
const (
	// maxNumbers is how many secrets are numbered. The placeholders of later ones
	// have no number.
	maxNumbers = 10_000
	// maxLearned is how many secrets are looked for everywhere, of which no more
	// than maxAlike begin with the same minLearned bytes, and minLearned and
	// mostLearned how long they are, in bytes.
	maxLearned  = 256
	maxAlike    = 16
	minLearned  = 12
	mostLearned = 4 << 10
	// maxKeyLines is how many lines of a private key are looked for.
	maxKeyLines = 256
	// maxNesting is the depth to which places are known.
	maxNesting = 512
)

// A Redactor replaces secrets in records by placeholders such as «redacted 1»; equal
// secrets get equal numbers. It replaces
//
//   - the values of env and headers, of MCP servers and of terminals;
//   - string values of members whose names mark them as secret, such as apiKey,
//     password or accessToken, and all strings within such a member of _meta;
//   - anything that looks like a token, wherever it is: sk-…, ghp_…, xoxb-…, AKIA…,
//     Bearer …, JSON web tokens, private keys, passwords in URLs, assignments
//     to names such as API_KEY, and the like;
//   - values of 12 bytes or more that were found in one of the first two ways,
//     wherever they occur later. Of these it remembers the first 256, at most 16 that
//     begin with the same bytes.
//
// Everything else stays byte for byte, and JSON stays JSON. A secret that is split
// over several frames, as in streamed text, is not recognized. The zero value is ready
// to use. A Redactor is not safe for concurrent use.
type Redactor struct {
	// Mark, if set, is called with each secret and returns what stands in its place, instead of
	// a placeholder. The secret is text of JSON in the data of frames. It must return its own
	// marks as they are.
	Mark func(secret []byte) []byte

	numbers map[[sha256.Size]byte]int
	next    int                           // the last number that was given
	learned map[[minLearned]byte][][]byte // secrets by what they begin with
	count   int                           // of them

	keyLines int       // how many more lines may be of a private key
	first    [256]bool // bytes a learned secret begins with

	out   []byte // of Apply
	stack []place
}

// Redact appends the data of rec to dst, without its secrets, and returns the result.
// It does not modify rec.
func (r *Redactor) Redact(dst []byte, rec *Record) []byte {
	if rec.Kind == Frame {
		w := walk{r: r, in: rec.Data, out: dst, stack: r.stack[:0]}
		w.run(true)
		r.stack = w.stack
		return w.out
	}
	// Names and values stand in different strings there, or in none.
	w := walk{r: r, in: rec.Data}
	w.run(false)
	text := w.out
	if rec.Kind == Stderr {
		n := r.keyLine(text)
		dst, text = r.replace(dst, text[:n]), text[n:]
	}
	return r.appendTokens(dst, text)
}

// keyLine returns how much of a line is a part of a private key that began on a
// line before it.
func (r *Redactor) keyLine(line []byte) (n int) {
	line = bytes.TrimRight(line, "\r\n")
	if r.keyLines > 0 {
		r.keyLines--
		if n = bytes.Index(line, []byte(keyEnd)); n < 0 {
			n = len(line)
		}
		if (word|base64s).run(line[:n]) < n && !bytes.Contains(line[:n], []byte(": ")) {
			n, r.keyLines = 0, 0 // something else was said
		}
		if n < len(line) {
			r.keyLines = 0
		}
	}
	if i := bytes.LastIndex(line, []byte(keyBegin)); i >= 0 && keyHead(line[i:]) > 0 && !bytes.Contains(line[i:], []byte(keyEnd)) {
		r.keyLines = maxKeyLines
	}
	return n
}

// Apply replaces the secrets in rec. Its data is then valid until the next call.
func (r *Redactor) Apply(rec *Record) {
	whole := rec.Size <= int64(len(rec.Data))
	r.out = r.Redact(r.out[:0], rec)
	rec.Data = r.out
	if whole {
		rec.Size = 0
	}
	rec.Detail.Text = r.Text(rec.Detail.Text)
	if cap(r.out) > keepSize {
		r.out = nil // a large frame passed
	}
}

// Text returns s without its secrets.
func (r *Redactor) Text(s string) string {
	if s == "" {
		return s
	}
	return string(r.Redact(nil, &Record{Kind: Text, Data: []byte(s)}))
}

// Command returns the words of a command line without their secrets. The word after an
// option such as --api-key is one.
func (r *Redactor) Command(words []string) []string {
	if words == nil {
		return nil
	}
	out := make([]string, len(words))
	for i, word := range words {
		if i > 0 && len(words[i-1]) > 1 && words[i-1][0] == '-' && secretName([]byte(words[i-1])) &&
			word != "" && word[0] != '-' {
			out[i] = string(r.replace(nil, []byte(word)))
			continue
		}
		out[i] = r.Text(word)
	}
	return out
}

// Marks of a placeholder.
const (
	markOpen  = "«redacted"
	markClose = "»"
)

// replace appends the placeholder of secret, which is text of JSON or not. What
// is a placeholder already stays, so redacting twice changes nothing.
func (r *Redactor) replace(dst, secret []byte) []byte {
	if len(secret) == 0 {
		return dst
	}
	if r.Mark != nil {
		return append(dst, r.Mark(secret)...)
	}
	if n, ok := placeholder(secret); ok {
		r.next = max(r.next, n)
		return append(dst, secret...)
	}
	key := sha256.Sum256(secret)
	n, ok := r.numbers[key]
	if !ok && len(r.numbers) < maxNumbers {
		if r.numbers == nil {
			r.numbers = map[[sha256.Size]byte]int{}
		}
		r.next++
		n = r.next
		r.numbers[key] = n
	}
	dst = append(dst, markOpen...)
	if n > 0 {
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return append(dst, markClose...)
}

// placeholder reports whether text is a placeholder, and its number.
func placeholder(text []byte) (int, bool) {
	rest, ok := bytes.CutPrefix(text, []byte(markOpen))
	if !ok {
		return 0, false
	}
	rest, ok = bytes.CutSuffix(rest, []byte(markClose))
	if !ok {
		return 0, false
	}
	if len(rest) == 0 {
		return 0, true
	}
	if rest[0] != ' ' || len(rest) > 8 {
		return 0, false
	}
	n, err := strconv.Atoi(string(rest[1:]))
	return n, err == nil && n > 0
}

// learn makes secret, the inside of a JSON string, be found everywhere.
func (r *Redactor) learn(secret []byte) {
	if _, ok := placeholder(secret); ok {
		return
	}
	r.learnText(secret)
	if bytes.IndexByte(secret, '\\') < 0 {
		return
	}
	// In a line that is not JSON it stands without escapes.
	var plain string
	if json.Unmarshal(append(append([]byte{'"'}, secret...), '"'), &plain) == nil {
		r.learnText([]byte(plain))
	}
}

// learnWord learns a secret, and what follows the word it may begin with, as in
// "Bearer …".
func (r *Redactor) learnWord(secret []byte) {
	r.learn(secret)
	if _, token, ok := bytes.Cut(secret, []byte(" ")); ok {
		r.learn(token)
	}
}

func (r *Redactor) learnText(secret []byte) {
	if len(secret) < minLearned || len(secret) > mostLearned || r.count >= maxLearned {
		return
	}
	begin := [minLearned]byte(secret)
	alike := r.learned[begin]
	if len(alike) >= maxAlike || slices.ContainsFunc(alike, func(known []byte) bool { return bytes.Equal(known, secret) }) {
		return
	}
	if r.learned == nil {
		r.learned = map[[minLearned]byte][][]byte{}
	}
	r.learned[begin] = append(alike, bytes.Clone(secret))
	r.count++
	r.first[secret[0]] = true
}

// known returns the length of the longest learned secret that text begins with.
func (r *Redactor) known(text []byte) int {
	if !r.first[text[0]] || len(text) < minLearned {
		return 0
	}
	n := 0
	for _, secret := range r.learned[[minLearned]byte(text)] {
		if len(secret) > n && bytes.HasPrefix(text, secret) {
			n = len(secret)
		}
	}
	return n
}
