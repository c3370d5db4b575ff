package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/wire"
)

// numberMark stands for the placeholder of the number n.
func numberMark(n int) string { return fmt.Sprintf("«redacted %d»", n) }

// TestRedactJSON has secrets between ‹ and › in frames: they and nothing else is
// replaced.
func TestRedactJSON(t *testing.T) {
	tests := []struct{ name, in string }{
		{"environment of a server", `{"mcpServers":[{"name":"x","command":"y","args":["z"],"env":[{"name":"A","value":"‹1›"},{"value":"‹true›","name":"B"}]}]}`},
		{"environment as an object", `{"env":{"A":"‹x›","N":1,"B":"‹x y›"},"cwd":"/x"}`},
		{"environment as a list", `{"env":["A=‹b=c›","D"]}`},
		{"headers", `{"headers":[{"name":"X","value":"‹abc›"}],"url":"https://x/y"}`},
		{"headers as lines", `{"headers":["Authorization: ‹Bearer abcdefghijk0123456789==›","A:‹b›","sk-ant-…","‹sk-ant-0123456789abcdef›"]}`},
		{"headers as an object", `{"headers":{"Authorization":"‹Bearer x›","N":{"deep":["‹y›"]}}}`},
		{"environments and headers of other names", `{"http_headers":{"X-Y":"‹abc›"},"extraHeaders":["A=‹b›"],"extra_env":{"A":"‹x›"},"processEnv":{"A":"‹y›"},"envVars":[{"name":"A","value":"‹z›"}]}`},
		{"lists that are none", `{"virtualenv":"/x","venv":{"a":"b"},"columns":{"a":"b"},"en":{"a":"b"},"header":{"a":"b"},"environments":{"a":"b"}}`},
		{"cookies", `{"cookies":[{"name":"sid","value":"‹abc›","path":"/"}],"cookie":"‹x›"}`},
		{"schemes", `{"text":"curl -H 'Authorization: token ‹0123456789abcdef›' -H \"authorization: Negotiate ‹fedcba9876543210›\" Proxy-Authorization: Bearer ‹00112233445566778899› Authorization: Basic $X Authorization: it is needed, Authorization: token"}`},
		{"signed URLs", `{"uri":"https://x/y?se=2026&sig=‹a%2Fb%3D›&X-Amz-Signature=‹abc0›&v=1","text":"signature=0123456789 x sig=0123456789"}`},
		{"names", `{"apiKey":"‹k›","api_key":"‹k›","X-Api-Key":"‹k›","password":"‹p›","accessToken":"‹t›","client_secret":"‹s›","Cookie":"‹c›","passwords":5,"key":"k"}`},
		{"names of tokens that are none", `{"progressToken":"abc","nextPageToken":"p","maxTokens":"5","tokens":"x","tokenizer":"y"}`},
		{"numbers and lists", `{"token":5,"password":null,"secret":["‹a›",{"b":"c"}],"totalTokens":7}`},
		{"a schema", `{"properties":{"password":{"type":"string","title":"Password"}},"required":["password"]}`},
		{"pairs elsewhere", `[{"name":"GITHUB_TOKEN","value":"‹v›"},{"name":"colour","value":"red"}]`},
		{"meta", `{"_meta":{"x.dev/credentials":{"user":"‹u›","n":1},"trace":"t","apiKey":"‹k›"},"credentials":{"user":"u"}}`},
		{"flags", `{"args":["--api-key","‹k›","--verbose","x","--token=‹abc12345›"]}`},
		{"tokens in text", `{"text":"use ‹sk-ant-0123456789abcdef›, ‹ghp_abcdefghijklmnopqrst1› or ‹AKIAABCDEFGHIJKLMNOP›.\nBearer ‹abc.def-123456›\t‹xoxb-1234567890›"}`},
		{"words that are no tokens", `{"text":"risk-averse-and-long-words task-list-of-the-whole sk-learn-something-without Basic configuration Bearer authentication eyJ.a.b desk-0123456789abcdefghijk"}`},
		{"web token", `{"text":"x ‹eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.abc-_123› y"}`},
		{"behind an escape", `{"text":"\n‹sk-ant-0123456789abcdef›\u0020‹ghp_abcdefghijklmnopqrst1›\\‹AKIAABCDEFGHIJKLMNOP›"}`},
		{"URLs", `{"uri":"https://me:‹pw›@host/p?a=b&access_token=‹x›&c=d","other":"http://host:80/x@y"}`},
		{"assignments", `{"text":"export OPENAI_API_KEY=‹abcd› \"token\": \"‹longenough›\" password = ‹hunter22› x=1 TOKEN=$OTHER"}`},
		{"assignments in code", `{"text":"token: string, secret = true, password: foo, TOKEN_COUNT=12345678"}`},
		{"private key", `{"text":"-----BEGIN RSA PRIVATE KEY-----‹\nabc\n›-----END RSA PRIVATE KEY-----\n"}`},
		{"public key", `{"text":"-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----"}`},
		{"empty", `{"env":[{"name":"A","value":""}],"token":""}`},
		{"spaces", "{ \"token\" :\t\"‹x›\" , \"a\" : [ 1 , { } ] }"},
		{"duplicate keys", `{"token":"‹a›","token":"‹b›"}`},
		{"bad UTF-8", "{\"a\":\"\xff\",\"token\":\"‹\xff\xfe›\"}"},
		{"quotes", `{"a\"token":"‹x\"y\\›","b":"\\"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, want := numbered(tt.in)
			var r Redactor
			rec := Record{Data: []byte(in)}
			got := r.Redact([]byte("before "), &rec)
			if diff := cmp.Diff("before "+want, string(got)); diff != "" {
				t.Error(diff)
			}
			if string(rec.Data) != in {
				t.Errorf("changed what it read: %s", rec.Data)
			}
			if again := r.Redact(nil, &Record{Data: got[7:]}); string(again) != want {
				t.Errorf("the second time: %s", again)
			}
		})
	}
}

// numbered returns s without the marks of secrets, and with their placeholders.
func numbered(s string) (in, want string) {
	seen := map[string]int{}
	for {
		before, rest, ok := strings.Cut(s, "‹")
		in, want = in+before, want+before
		if !ok {
			return in, want
		}
		secret, after, _ := strings.Cut(rest, "›")
		if seen[secret] == 0 {
			seen[secret] = len(seen) + 1
		}
		in, want, s = in+secret, want+numberMark(seen[secret]), after
	}
}

// TestRedactText is about lines that are not JSON, or no more.
func TestRedactText(t *testing.T) {
	tests := []struct{ name, in string }{
		{"log line", `level=info msg="login" API_KEY="‹abcd›" token: ‹0123456789ab› it's "fine`},
		{"cut frame", `{"mcpServers":[{"env":[{"name":"A","value":"‹sec›"},{"name":"B","value":"‹half a sec›`},
		{"cut frame with a token", `{"x":{"password":"‹half`},
		{"flag", `run --api-key ‹12345› --token --x`},
		{"password with an at sign", `postgres://user:‹p@ss:w0rd›@host/db?x=a@b`},
		{"token as a user", `https://‹0123456789abcdefghij›@example.com/x and https://somebody@example.com`},
		{"webhook", `curl https://hooks.slack.com/services/‹T0/B0/0123456789abcdefgh›`},
		{"key block", `-----BEGIN PGP PRIVATE KEY BLOCK-----‹ abc def ›\`},
		{"quoted frame", `sending {"headers":{"X":"‹v›"}} to "agent"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, want := numbered(tt.in)
			var r Redactor
			if diff := cmp.Diff(want, r.Text(in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRedactKeyLines has private keys that are spread over lines.
func TestRedactKeyLines(t *testing.T) {
	var r Redactor
	var got []string
	for _, line := range []string{
		"x -----BEGIN PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", "MIIEvQ", "AbC+/=", "-----END PRIVATE KEY-----", "MIIEvQ",
		"-----BEGIN PRIVATE KEY-----", "is how a key begins", "MIIEvR",
	} {
		got = append(got, string(r.Redact(nil, &Record{Kind: Stderr, Data: []byte(line)})))
	}
	want := []string{
		"x -----BEGIN PRIVATE KEY-----", numberMark(1), "", numberMark(2), numberMark(3), "-----END PRIVATE KEY-----", "MIIEvQ",
		"-----BEGIN PRIVATE KEY-----", "is how a key begins", "MIIEvR",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRedactEnds has texts of a kind that took a time that grows with the square
// of their length: minutes for these.
func TestRedactEnds(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n /= 10 // still seconds, if time grows in that way
	}
	for _, in := range []string{
		strings.Repeat("token=", n), strings.Repeat("token:", n), strings.Repeat("token: '", n), strings.Repeat("--token a ", n),
		strings.Repeat("-----BEGIN PRIVATE KEY-----", n) + `\`, strings.Repeat("a://a:", n),
		`{"` + strings.Repeat("-", n) + `":[` + strings.Repeat(`"a",`, n) + `"a"]}`,
	} {
		var r Redactor
		r.Redact(nil, &Record{Kind: Text, Data: []byte(in)})
		r.Redact(nil, &Record{Kind: Frame, Data: fmt.Appendf(nil, `{"x":%q}`, in)})
	}
	var r Redactor
	for i := range maxLearned {
		r.Redact(nil, &Record{Data: fmt.Appendf(nil, `{"token":"%0*d"}`, mostLearned-1, i)})
	}
	if r.count > maxAlike {
		t.Errorf("%d secrets that begin alike are looked for", r.count)
	}
}

// TestRedactLearned finds a secret again that was known by its place, however it
// is escaped, and no harmless value.
func TestRedactLearned(t *testing.T) {
	var r Redactor
	redact := func(kind Kind, s string) string {
		return string(r.Redact(nil, &Record{Kind: kind, Data: []byte(s)}))
	}
	redact(Frame, `{"env":[{"name":"DB_PASSWORD","value":"correct\\horse\"battery"},{"name":"HOME","value":"/home/somebody"},{"name":"T_TOKEN","value":"short"}]}`)
	redact(Frame, `{"a":[{"name":"N_TOKEN","value":"ends in a backslash\\"}]}`)
	redact(Frame, `{"headers":{"Authorization":"Bearer 0123456789abcdef"}}`)
	tests := []struct {
		kind     Kind
		in, want string
	}{
		{Frame, `{"text":"xcorrect\\horse\"batteryx"}`, `{"text":"x«redacted 1»x"}`},
		{Stderr, `xcorrect\horse"batteryx`, `x«redacted 6»x`},
		{Frame, `{"text":"ends in a backslash\"x"}`, `{"text":"ends in a backslash\"x"}`},
		{Frame, `{"text":"ends in a backslash\\\"x"}`, `{"text":"«redacted 4»\"x"}`},
		{Frame, `{"text":"/home/somebody short"}`, `{"text":"/home/somebody short"}`},
		{Frame, `{"text":"got 0123456789abcdef"}`, `{"text":"got «redacted 7»"}`},
	}
	for _, tt := range tests {
		if got := redact(tt.kind, tt.in); got != tt.want {
			t.Errorf("%s became %s, want %s", tt.in, got, tt.want)
		}
	}
}

// TestRedactBounds has more secrets than are remembered.
func TestRedactBounds(t *testing.T) {
	var r Redactor
	for i := range maxNumbers + 10 {
		secret := fmt.Sprintf("secret %d of many", i)
		got := string(r.Redact(nil, &Record{Data: fmt.Appendf(nil, `{"token":%q}`, secret)}))
		want := fmt.Sprintf(`{"token":%q}`, numberMark(i+1))
		if i >= maxNumbers {
			want = `{"token":"«redacted»"}`
		}
		if got != want {
			t.Fatalf("%d: got %s, want %s", i, got, want)
		}
	}
	if r.count != maxLearned || len(r.numbers) != maxNumbers {
		t.Error(r.count, len(r.numbers))
	}
	deep := strings.Repeat("[", 100_000) + `{"token":"x"}` + strings.Repeat("]", 100_000)
	if got := r.Text(deep); len(got) < len(deep) {
		t.Error(len(got))
	}
}

func TestRedactCommand(t *testing.T) {
	var r Redactor
	got := r.Command([]string{"agent", "--api-key", "x", "--token=abcd1234", "--password", "--acp", "sk-ant-0123456789abcdef"})
	want := []string{"agent", "--api-key", numberMark(1), "--token=" + numberMark(2), "--password", "--acp", numberMark(3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.Command(nil) != nil {
		t.Error("made words out of nothing")
	}
}

// FuzzRedactor: JSON stays JSON with the same members, redacting is idempotent,
// and nothing makes it panic.
func FuzzRedactor(f *testing.F) {
	f.Add(`{"env":[{"name":"TOKEN","value":"a\\\"b0123456789"}],"text":"a\\\"b0123456789"}`, `{"x":"API_KEY=\"abc\" sk-0123456789abcdef0"}`)
	f.Add(`{"headers":{"a":"\u0041\ud800"},"token":"ends in a backslash\\"}`, `{"a":"ends in a backslash\\\\"}`)
	f.Add(`{"password":"---------------\\n"}`, `"---------------\\\\n"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var r Redactor
		for _, in := range []string{a, b, a} {
			kind := Frame
			if wire.Valid([]byte(in)) != nil {
				kind = Text
			}
			out := r.Redact(nil, &Record{Kind: kind, Data: []byte(in)})
			if kind == Text {
				continue
			}
			if err := wire.Valid(out); err != nil {
				t.Fatalf("%s became %s: %v", in, out, err)
			}
			if !bytes.Equal(shape(t, []byte(in)), shape(t, out)) {
				t.Fatalf("%s became %s", in, out)
			}
		}
	})
}

// shape returns the tokens of JSON text without what strings hold that are values.
func shape(t *testing.T, in []byte) []byte {
	var out []byte
	for i := 0; i < len(in); i++ {
		if in[i] != '"' {
			out = append(out, in[i])
			continue
		}
		end, next := stringEnd(in, i+1)
		out = append(out, '"')
		if isKey(in[next:]) {
			out = append(out, in[i:end]...)
		}
		i = next - 1
	}
	return out
}

func BenchmarkRedactor(b *testing.B) {
	text, _ := json.Marshal(strings.Repeat("The quick brown fox jumps over the lazy dog; see main.go:17.\n", 12))
	in := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`, text)
	var r Redactor
	r.Redact(nil, &Record{Data: []byte(`{"headers":{"Authorization":"Bearer 0123456789abcdef"}}`)})
	rec := Record{Data: in}
	var out []byte
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		out = r.Redact(out[:0], &rec)
	}
}
