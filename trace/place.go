package trace

import "bytes"

// A walk goes through JSON and replaces the secrets that are known by their place. It
// treats any text as JSON, so that it sees the same places in a frame that was cut and in
// a log line that quotes one.
type walk struct {
	r    *Redactor
	in   []byte
	out  []byte
	done int // how much of in has been written to out

	stack []place
	depth int // of what is nested deeper than places are known
}

// A place is what is known about an object or array.
type place struct {
	all   bool // every string in it is secret
	list  bool // its objects are pairs of name and value whose values are secret
	pair  bool // it is such an object
	items bool // its own strings are secret
	meta  bool // it is in a _meta

	key  []byte // last member name; of an array that of its own member
	name []byte // value of its member name
	flag bool   // the string before was an option such as --api-key
}

func (w *walk) run(json bool) {
	w.stack = append(w.stack, place{})
	for i := 0; i < len(w.in); {
		switch c := w.in[i]; c {
		case '"':
			i = w.text(i, json)
			continue
		case '{', '[':
			w.enter(c == '[')
		case '}', ']':
			w.leave()
		}
		i++
	}
	w.out = append(w.out, w.in[w.done:]...)
}

func (w *walk) top() *place { return &w.stack[len(w.stack)-1] }

func (w *walk) enter(array bool) {
	if len(w.stack) >= maxNesting {
		w.depth++
		return
	}
	in := w.top()
	next := place{all: in.all, meta: in.meta}
	switch {
	case (in.list || in.items) && !array:
		next.pair = true
	case bagName(in.key):
		next.list, next.all = array, in.all || !array
	case keyIs(in.key, "_meta"):
		next.meta = true
	case secretName(in.key):
		next.items = array
		next.all = in.all || in.meta
	}
	if array {
		next.key = in.key
		if next.list {
			next.key = nil
		}
	}
	w.stack = append(w.stack, next)
}

func (w *walk) leave() {
	switch {
	case w.depth > 0:
		w.depth--
	case len(w.stack) > 1:
		w.stack = w.stack[:len(w.stack)-1]
	}
}

// text handles the string that begins at i and returns where it ends.
func (w *walk) text(i int, json bool) int {
	begin := i + 1
	end, next := stringEnd(w.in, begin)
	content := w.in[begin:end]
	in := w.top()
	if isKey(w.in[next:]) {
		in.key = content
		return next
	}
	secret := in.all || in.items || in.flag || in.pair && keyIs(in.key, "value") ||
		!in.list && secretName(in.key) ||
		secretName(in.name) && keyIs(in.key, "value")
	in.flag = false
	switch {
	case len(content) == 0:
	case secret:
		w.put(begin, w.r.replace, content, end)
		if secretName(in.key) || secretName(in.name) {
			w.r.learnWord(content)
		}
	case in.list:
		// KEY=value, a form of environments, or a line of a header.
		if at := bytes.IndexAny(content, "=:"); at >= 0 {
			name, value := content[:at], bytes.TrimLeft(content[at+1:], " ")
			w.put(end-len(value), w.r.replace, value, end)
			if secretName(name) {
				w.r.learnWord(value)
			}
		} else if json {
			w.put(begin, w.r.appendTokens, content, end)
		}
	default:
		if json {
			w.put(begin, w.r.appendTokens, content, end)
		}
		if keyIs(in.key, "name") {
			in.name = content
		}
		in.flag = content[0] == '-' && secretName(content)
	}
	return next
}

// put writes what precedes begin unchanged, and content through f.
func (w *walk) put(begin int, f func(dst, content []byte) []byte, content []byte, end int) {
	w.out = append(w.out, w.in[w.done:begin]...)
	w.out = f(w.out, content)
	w.done = end
}

// stringEnd returns where the content of the string that begins at i ends, and what
// follows its quote. A string without an end extends to the end of the text.
func stringEnd(in []byte, i int) (end, next int) {
	from := i
	for {
		n := bytes.IndexByte(in[i:], '"')
		if n < 0 {
			return len(in), len(in)
		}
		i += n
		escapes := 0
		for i-escapes > from && in[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i, i + 1
		}
		i++
	}
}

// isKey reports whether a colon follows: what came before is a member name.
func isKey(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		case ':':
			return true
		default:
			return false
		}
	}
	return false
}

func keyIs(key []byte, names ...string) bool {
	for _, name := range names {
		if string(key) == name {
			return true
		}
	}
	return false
}

// bagName reports whether a name is that of an environment or of headers: env, headers,
// httpHeaders, extra_env.
func bagName(name []byte) bool {
	switch {
	case keyIs(name, "env", "headers", "environment"):
		return true
	case len(name) < 4:
		return false
	case bytes.HasSuffix(name, []byte("_env")), bytes.HasSuffix(name, []byte("-env")), bytes.HasSuffix(name, []byte("Env")):
		return true
	}
	for _, end := range []string{"headers", "environment", "envvars", "env_vars"} {
		if endsIn(name, end) {
			return true
		}
	}
	return false
}

// endsIn reports whether a name has a suffix, ignoring case.
func endsIn(name []byte, end string) bool {
	return len(name) >= len(end) && bytes.EqualFold(name[len(name)-len(end):], []byte(end))
}

// secretEnds are the suffixes of names of secrets, in lower case and without marks
// between words. harmless are names with such a suffix that are not secrets.
var (
	secretEnds = []string{
		"apikey", "token", "secret", "password", "passwd", "passphrase",
		"authorization", "credential", "credentials", "cookie", "cookies",
		"privatekey", "accesskey", "accesskeyid", "secretkey", "authkey", "signingkey",
		"encryptionkey",
	}
	harmless = []string{"progresstoken", "pagetoken", "nexttoken", "continuationtoken"}
)

// SecretName reports whether a name is that of a secret, such as apiKey, X-Api-Key,
// GITHUB_TOKEN or --client-secret: the value of a member, a header, a variable or a flag of that
// name is what a [Redactor] replaces. It may be called from any goroutine.
func SecretName(name string) bool { return secretName([]byte(name)) }

// secretName is [SecretName].
func secretName(name []byte) bool {
	if len(name) < 5 && len(name) != 0 {
		return false
	}
	var low [32]byte
	n := len(low)
	name = name[max(0, len(name)-8*len(low)):] // the rest may be anything
	for i := len(name) - 1; i >= 0 && n > 0; i-- {
		c := name[i]
		switch {
		case c == '-' || c == '_' || c == '.' || c == ' ':
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		n--
		low[n] = c
	}
	end := low[n:]
	if len(end) == 0 {
		return false
	}
	// A variable such as OPENAI_KEY or NEXT_TOKEN. A member called key may be anything, and
	// nextToken is harmless.
	if bytes.HasSuffix(name, []byte("_KEY")) || bytes.HasSuffix(name, []byte("_TOKEN")) {
		return true
	}
	switch end[len(end)-1] {
	case 'y', 'n', 't', 'd', 'e', 'l', 's':
	default:
		return false
	}
	for _, s := range secretEnds {
		if bytes.HasSuffix(end, []byte(s)) {
			for _, h := range harmless {
				if bytes.HasSuffix(end, []byte(h)) {
					return false
				}
			}
			return true
		}
	}
	return false
}
