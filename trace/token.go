package trace

import "bytes"

// A token describes what a kind of secret looks like: a beginning, and then at least min
// characters of a set.
type token struct {
	start string
	min   int
	set   charset
	digit bool // there is a digit in it
	keep  bool // the beginning is not a part of the secret
}

type charset uint8

const (
	alnum   charset = 1 << iota
	mark            // - and _
	dot             // .
	base64s         // + / = ~
	lower           // lower-case letters too: not set for those of capitals and digits
)

const word = alnum | lower | mark

// tokens are the kinds that are looked for at the beginning of a word.
var tokens = []token{
	{start: "sk-", min: 16, set: word, digit: true},
	{start: "sk_live_", min: 10, set: word},
	{start: "sk_test_", min: 10, set: word},
	{start: "rk_live_", min: 10, set: word},
	{start: "rk_test_", min: 10, set: word},
	{start: "whsec_", min: 16, set: word},
	{start: "ghp_", min: 20, set: word},
	{start: "gho_", min: 20, set: word},
	{start: "ghu_", min: 20, set: word},
	{start: "ghs_", min: 20, set: word},
	{start: "ghr_", min: 20, set: word},
	{start: "github_pat_", min: 20, set: word},
	{start: "glpat-", min: 16, set: word},
	{start: "xoxa-", min: 10, set: word},
	{start: "xoxb-", min: 10, set: word},
	{start: "xoxe-", min: 10, set: word},
	{start: "xoxe.", min: 10, set: word | dot},
	{start: "xoxp-", min: 10, set: word},
	{start: "xoxr-", min: 10, set: word},
	{start: "xoxs-", min: 10, set: word},
	{start: "xapp-", min: 10, set: word},
	{start: "AKIA", min: 16, set: alnum},
	{start: "ASIA", min: 16, set: alnum},
	{start: "AIza", min: 30, set: word},
	{start: "ya29.", min: 20, set: word},
	{start: "npm_", min: 30, set: word},
	{start: "hf_", min: 30, set: word},
	{start: "pypi-", min: 30, set: word},
	{start: "gsk_", min: 20, set: word},
	{start: "xai-", min: 20, set: word, digit: true},
	{start: "r8_", min: 30, set: word},
	{start: "SG.", min: 40, set: word | dot},
	{start: "shpat_", min: 20, set: word},
	{start: "dckr_pat_", min: 20, set: word},
	{start: "dop_v1_", min: 30, set: word},
	{start: "glsa_", min: 20, set: word},
	{start: "lin_api_", min: 20, set: word},
	{start: "ntn_", min: 30, set: word},
	{start: "pplx-", min: 30, set: word},
	{start: "tvly-", min: 16, set: word, digit: true},
	{start: "hooks.slack.com/services/", min: 20, set: word | base64s, keep: true},
	{start: "Bearer ", min: 12, set: word | dot | base64s, digit: true, keep: true},
	{start: "bearer ", min: 12, set: word | dot | base64s, digit: true, keep: true},
	{start: "Basic ", min: 12, set: word | base64s, digit: true, keep: true},
}

// tokensBy finds them by their first byte.
var tokensBy = func() (by [256][]token) {
	for _, t := range tokens {
		by[t.start[0]] = append(by[t.start[0]], t)
	}
	return by
}()

// stops are the bytes at which appendTokens looks closer, in addition to those that
// secrets begin with.
var stops = func() (s [256]bool) {
	for c := range tokensBy {
		s[c] = len(tokensBy[c]) > 0
	}
	for _, c := range []byte(`e-=:\`) {
		s[c] = true
	}
	return s
}()

func (s charset) has(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z':
		return s&alnum != 0
	case c >= 'a' && c <= 'z':
		return s&lower != 0
	case c == '-', c == '_':
		return s&mark != 0
	case c == '.':
		return s&dot != 0
	case c == '+', c == '/', c == '=', c == '~':
		return s&base64s != 0
	}
	return false
}

func (s charset) run(text []byte) int {
	n := 0
	for n < len(text) && s.has(text[n]) {
		n++
	}
	return n
}

// isWord has the bytes of words.
var isWord = func() (is [256]bool) {
	for c := range is {
		is[c] = word.has(byte(c))
	}
	return is
}()

func hasDigit(text []byte) bool { return bytes.ContainsAny(text, "0123456789") }

// appendTokens appends text, the inside of a JSON string or a line, without what
// looks like a secret and what is known to be one.
func (r *Redactor) appendTokens(dst, text []byte) []byte {
	done := 0
	fresh := 0 // where a word begins even if a letter precedes: behind an escape
	vals := values{text: text}
	for i := 0; i < len(text); {
		c := text[i]
		if !stops[c] && !r.first[c] {
			i++
			continue
		}
		from, to := 0, 0
		if r.first[c] {
			if n := r.known(text[i:]); n == whole(text[i:i+n]) {
				from, to = i, i+n
			}
		}
		if to <= from {
			begins := i == fresh || !isWord[text[i-1]]
			if !begins && isWord[c] {
				i++
				continue
			}
			from, to = find(&vals, i, begins)
			to = from + whole(text[from:max(from, to)])
		}
		switch {
		case to > from:
			dst = append(dst, text[done:from]...)
			dst = r.replace(dst, text[from:to])
			done, i = to, to
			fresh = to
		case c == '\\':
			i = min(len(text), i+escapeLen(text[i:]))
			fresh = i
		default:
			i++
		}
	}
	return append(dst, text[done:]...)
}

// whole returns the length of text without an escape that is cut off at its end.
func whole(text []byte) int {
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '\\')
		if n < 0 {
			break
		}
		i += n
		if i+escapeLen(text[i:]) > len(text) {
			return i
		}
		i += escapeLen(text[i:])
	}
	return len(text)
}

func escapeLen(text []byte) int {
	if len(text) > 1 && text[1] == 'u' {
		return 6
	}
	return 2
}

// find returns where the secret that text[i] leads to is; there is none if to is 0.
// begins means that a word begins at i.
func find(vals *values, i int, begins bool) (from, to int) {
	text := vals.text
	switch c := text[i]; {
	case c == '=' || c == ':':
		if c == ':' && bytes.HasPrefix(text[i:], []byte("://")) {
			return userinfo(text, i+3)
		}
		return assigned(vals, i)
	case !begins:
		return 0, 0
	case c == '-':
		return dashes(vals, i)
	case c == 'e':
		return webToken(text, i)
	default:
		rest := text[i:]
		for _, t := range tokensBy[c] {
			if !bytes.HasPrefix(rest, []byte(t.start)) {
				continue
			}
			n := t.set.run(rest[len(t.start):])
			body := rest[len(t.start) : len(t.start)+n]
			if n < t.min || t.digit && !hasDigit(body) {
				continue
			}
			from = i
			if t.keep {
				from += len(t.start)
			}
			return from, i + len(t.start) + n
		}
	}
	return 0, 0
}

// userinfo finds the password in user:password@host, or a long user without one,
// which is a token.
func userinfo(text []byte, i int) (from, to int) {
	colon, at := -1, -1
	for n := i; n < len(text) && n < i+1024; n++ {
		c := text[n]
		if c == '/' || c == '?' || c == '#' || c == '"' || c == '\\' || c <= ' ' {
			break
		}
		switch {
		case c == ':' && colon < 0 && at < 0:
			colon = n
		case c == '@':
			at = n
		}
	}
	switch {
	case colon >= 0 && at > colon+1:
		return colon + 1, at
	case colon < 0 && at >= i+20 && hasDigit(text[i:at]):
		return i, at
	}
	return 0, 0
}

// webToken finds a JSON web token: three parts of base64 with dots between.
func webToken(text []byte, i int) (from, to int) {
	if !bytes.HasPrefix(text[i:], []byte("eyJ")) {
		return 0, 0
	}
	head := i + word.run(text[i:])
	if head-i < 10 || head >= len(text) || text[head] != '.' {
		return 0, 0
	}
	body := head + 1 + word.run(text[head+1:])
	if body-head < 10 {
		return 0, 0
	}
	if body < len(text) && text[body] == '.' {
		body += 1 + word.run(text[body+1:])
	}
	return i, body
}

// dashes finds a private key, and the word after an option such as --api-key.
func dashes(vals *values, i int) (from, to int) {
	text, rest := vals.text, vals.text[i:]
	if bytes.HasPrefix(rest, []byte(keyBegin)) {
		n := keyHead(rest)
		if n == 0 {
			return 0, 0
		}
		end := bytes.Index(rest[n:], []byte(keyEnd))
		if end < 0 {
			return i + n, len(text)
		}
		return i + n, i + n + end
	}
	if !bytes.HasPrefix(rest, []byte("--")) {
		return 0, 0
	}
	n := word.run(rest)
	if n+1 >= len(rest) || rest[n] != ' ' || rest[n+1] == '-' || !secretName(rest[:n]) {
		return 0, 0
	}
	value, digit := vals.at(i + n + 1)
	if value < 4 || !digit || isPlaceholder(rest[n+1:]) {
		return 0, 0
	}
	return i + n + 1, i + n + 1 + value
}

const (
	keyBegin = "-----BEGIN "
	keyEnd   = "-----END"
)

// keyHead returns the length of the line that text begins with if a private key
// follows it, as in files, or 0.
func keyHead(text []byte) int {
	for _, what := range []string{"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"} {
		if n := bytes.Index(text[:min(len(text), 64)], []byte(what)); n >= 0 {
			return n + len(what)
		}
	}
	return 0
}

// assigned finds the value after the = or : at i if the name before it is that of a
// secret: API_KEY=…, "token": "…", ?access_token=….
func assigned(vals *values, i int) (from, to int) {
	text, end := vals.text, i
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '"' || text[end-1] == '\'' || text[end-1] == '\\') && end > i-4 {
		end--
	}
	begin := end
	for begin > 0 && isWord[text[begin-1]] && end-begin < 64 {
		begin--
	}
	name := text[begin:end]
	query := text[i] == '=' && begin > 0 && (text[begin-1] == '?' || text[begin-1] == '&')
	// The signature of a signed URL gives access, too.
	if len(name) == 0 || !secretName(name) && !(query && (keyIs(name, "sig") || endsIn(name, "signature"))) {
		return 0, 0
	}
	at := i + 1
	for at < len(text) && text[at] == ' ' && at < i+3 {
		at++
	}
	tight, quoted := text[i] == '=' && at == i+1, false
	if at+1 < len(text) && text[at] == '\\' && text[at+1] == '"' {
		at, quoted = at+2, true
	} else if at < len(text) && (text[at] == '"' || text[at] == '\'') {
		at, quoted = at+1, true
	}
	n, digit := vals.at(at)
	if n > 0 && !digit && at+n < len(text) && text[at+n] == ' ' && endsIn(name, "authorization") {
		at += n + 1 // the scheme, as in Authorization: token …
		n, digit = vals.at(at)
	}
	if n == 0 || isPlaceholder(text[at:]) {
		return 0, 0
	}
	loud := tight && bytes.Equal(name, bytes.ToUpper(name))
	if query && tight || loud && n >= 4 || n >= 8 && (quoted || digit) {
		return at, at + n
	}
	return 0, 0
}

func isPlaceholder(text []byte) bool { return bytes.HasPrefix(text, []byte(markOpen)) }

// values finds the values in a text. It remembers the last one, because any number of
// others may begin within it.
type values struct {
	text      []byte
	from, end int // of the last one
	digit     int // where its last digit is, -1 if there is none
}

// at returns the length of the value that begins at i, and whether it has a digit. The
// length is 0 if the value names another one, such as $TOKEN.
func (v *values) at(i int) (n int, digit bool) {
	if i >= len(v.text) || bytes.IndexByte([]byte("$<{%"), v.text[i]) >= 0 {
		return 0, false
	}
	if i < v.from || i >= v.end {
		v.from, v.end, v.digit = i, i, -1
		for v.end < len(v.text) && !endsValue[v.text[v.end]] {
			if c := v.text[v.end]; c >= '0' && c <= '9' {
				v.digit = v.end
			}
			v.end++
		}
	}
	return v.end - i, v.digit >= i
}

// endsValue has the bytes that values do not have.
var endsValue = func() (ends [256]bool) {
	for c := range byte(' ' + 1) {
		ends[c] = true
	}
	for _, c := range []byte(`"'\,;&()[]{}<>`) {
		ends[c] = true
	}
	return ends
}()
