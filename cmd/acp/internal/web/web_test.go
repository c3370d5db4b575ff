package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goacp/acp/cmd/acp/internal/web/assets"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// local makes a request one that has come to an address of this machine. Pairs of head are headers; Host is one.
func local(method, path, body string, head ...string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:7842"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:9"
	for i := 0; i < len(head); i += 2 {
		if head[i] == "Host" {
			r.Host = head[i+1]
			continue
		}
		r.Header.Add(head[i], head[i+1])
	}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7842}))
}

// do serves a request.
func do(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

const teapot = http.StatusTeapot // of what is behind the page

var behind = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(teapot) })

// files is a page in small.
func files() fstest.MapFS {
	packed := func(text string) *fstest.MapFile {
		data, err := assets.Pack([]byte(text))
		if err != nil {
			panic(err)
		}
		return &fstest.MapFile{Data: data}
	}
	return fstest.MapFS{
		"index.html.gz":              packed("<!doctype html>" + strings.Repeat(" ", 1000)),
		"app.js.gz":                  packed(strings.Repeat("go();", 1000)),
		"sw.js":                      {Data: []byte("0")},
		"chunks/code-ABCDEFG2.js.gz": packed("1"),
		"icon-192.png":               {Data: bytes.Repeat([]byte{0}, 1000)},
		"manifest.webmanifest":       {Data: []byte("{}")},
		"notes.md":                   {Data: []byte("not for browsers")},
		"chunks/code-ABCDEFG2.map":   {Data: []byte("not for browsers")},
	}
}

// TestGuard: who gets the files.
func TestGuard(t *testing.T) {
	p := New(Config{Origins: []string{"https://friend.example"}})
	p.assets = load(files())
	h := p.Others(behind)
	visit := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for _, tt := range []struct {
		name, method, path string
		head               []string
		want               int
	}{
		{"the page", "GET", "/", nil, 200},
		{"its head", "HEAD", "/", nil, 200},
		{"its script", "GET", "/app.js", nil, 200},
		{"the page of a link", "GET", "/pair", nil, 200},
		{"the page of a link elsewhere", "GET", "/pair", visit, 200},
		{"the page by a link elsewhere", "GET", "/", visit, 200},
		{"a script by a link elsewhere", "GET", "/app.js", visit, 403},
		{"nothing by a link elsewhere", "GET", "/nothing", visit, 403},
		{"a link elsewhere, by the service worker", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "empty"}, 200},
		{"a script elsewhere", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty"}, 403},
		{"the page in a frame elsewhere", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"a form elsewhere", "POST", "/", append([]string{"Origin", "http://evil.example"}, visit...), 403},
		{"pairing by a program", "POST", "/pair", nil, teapot},
		{"under another name of this machine", "GET", "/", []string{"Host", "localhost:7842"}, 200},
		{"a name that points here", "GET", "/", []string{"Host", "evil.example:7842"}, 421},
		{"a name that points here, to pair", "GET", "/pair", []string{"Host", "evil.example:7842"}, 421},
		{"a page elsewhere", "GET", "/app.js", []string{"Origin", "http://evil.example"}, 403},
		{"a page of another server here", "GET", "/app.js", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"from nowhere", "GET", "/app.js", []string{"Origin", "null"}, 403},
		{"two origins", "GET", "/app.js", []string{"Origin", "http://127.0.0.1:7842", "Origin", "http://127.0.0.1:7842"}, 403},
		{"a page that is allowed", "GET", "/app.js", []string{"Origin", "https://friend.example"}, 200},
		{"the page itself", "GET", "/app.js", []string{"Origin", "http://127.0.0.1:7842", "Sec-Fetch-Site", "same-origin"}, 200},
		{"typed", "GET", "/app.js", []string{"Sec-Fetch-Site", "none"}, 200},
		{"an image elsewhere", "GET", "/icon-192.png", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a server of the same site", "GET", "/app.js", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"to change something", "POST", "/", nil, 405},
		{"to delete something", "DELETE", "/app.js", nil, 405},
		{"to pair otherwise", "PUT", "/pair", nil, 405},
		{"nothing", "GET", "/nothing", nil, 404},
		{"to change nothing", "POST", "/nothing", nil, 404},
		{"a folder", "GET", "/chunks", nil, 404},
		{"a folder with a slash", "GET", "/chunks/", nil, 404},
		{"the files themselves", "GET", "/assets/app.js", nil, 404},
		{"out of the files", "GET", "/..%2fweb.go", nil, 404},
		{"out of the files, in dots", "GET", "/../web.go", nil, 404},
		{"another kind of file", "GET", "/notes.md", nil, 404},
		{"a map of the source", "GET", "/chunks/code-ABCDEFG2.map", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := do(h, local(tt.method, tt.path, "", tt.head...))
			text := body(t, res)
			if res.StatusCode != tt.want {
				t.Fatalf("answers %d (%s), want %d", res.StatusCode, text, tt.want)
			}
			if tt.want == teapot {
				return
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Access-Control-Allow-Origin": "",
				"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Permissions-Policy": permissions,
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s is %q", name, got)
				}
			}
			if allow := res.Header.Get("Allow"); (allow != "") != (tt.want == 405) {
				t.Errorf("Allow is %q", allow)
			}
			if (tt.method == "HEAD" || tt.want == 304) && text != "" {
				t.Errorf("the body is %q", text)
			}
			if tt.want != 200 && res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("a refusal is kept: %v", res.Header)
			}
		})
	}
}

// TestPolicy: nobody can put the page into a frame, and nothing else than a script can run.
func TestPolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy+";", want+";") {
			t.Errorf("%q is missing", want)
		}
	}
	for _, bad := range []string{"unsafe", "http", "*", "ws:"} {
		if strings.Contains(policy, bad) {
			t.Errorf("%q is in it", bad)
		}
	}
}

// TestCaching: a browser asks again, and gets a file that has not changed once.
func TestCaching(t *testing.T) {
	p := New(Config{})
	p.assets = load(files())
	h := p.Others(behind)
	get := func(path string, head ...string) *http.Response { return do(h, local("GET", path, "", head...)) }
	for path, want := range map[string][2]string{
		"/": {"no-cache", "text/html; charset=utf-8"}, "/sw.js": {"no-cache", "text/javascript; charset=utf-8"},
		"/app.js": {"no-cache", "text/javascript; charset=utf-8"}, "/icon-192.png": {"no-cache", "image/png"},
		"/chunks/code-ABCDEFG2.js": {"public, max-age=31536000, immutable", "text/javascript; charset=utf-8"},
		"/manifest.webmanifest":    {"no-cache", "application/manifest+json"},
	} {
		res := get(path)
		if res.Header.Get("Cache-Control") != want[0] || res.Header.Get("Content-Type") != want[1] {
			t.Errorf("%s: %v", path, res.Header)
		}
	}
	plain, zipped := get("/app.js"), get("/app.js", "Accept-Encoding", "br, gzip")
	tag, other := plain.Header.Get("ETag"), zipped.Header.Get("ETag")
	if tag == "" || tag == other || !strings.HasPrefix(tag, `"`) || zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%v\n%v", plain.Header, zipped.Header)
	}
	want := body(t, plain)
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != want || len(want) != 5000 {
		t.Errorf("%d bytes instead of %d: %v", len(text), len(want), err)
	}
	if res := get("/icon-192.png", "Accept-Encoding", "gzip"); res.Header.Get("Content-Encoding") != "" {
		t.Error("a picture is compressed twice")
	}
	if res := get("/sw.js", "Accept-Encoding", "gzip"); res.Header.Get("Content-Encoding") != "" || body(t, res) != "0" {
		t.Error("a file that is stored as it is was compressed")
	}
	for _, tt := range []struct {
		encoding, match string
		status          int
	}{
		{"", tag, 304}, {"gzip", other, 304}, {"", "W/" + tag, 304}, {"", `"x", ` + tag, 304}, {"", "*", 304},
		{"gzip", tag, 200}, {"", other, 200}, {"", `"x"`, 200}, {"", strings.Trim(tag, `"`), 200}, {"", "", 200},
	} {
		res := get("/app.js", "Accept-Encoding", tt.encoding, "If-None-Match", tt.match)
		text := body(t, res)
		if res.StatusCode != tt.status || (text == "") != (tt.status == 304) || res.Header.Get("ETag") == "" {
			t.Errorf("%+v: %d, %d bytes", tt, res.StatusCode, len(text))
		}
	}
}

// TestEncoding: what a client says that it can read.
func TestEncoding(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.000": false, "*": true, "*;q=0": false,
		"*, gzip;q=0": false, "gzip;q=0, *": false, "identity": false, "gzip;q=x": false, "deflate, br": false, "gzipped": false,
	} {
		if got := acceptsGzip(http.Header{"Accept-Encoding": {text}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestEmbedded: the page that is in the program is served.
func TestEmbedded(t *testing.T) {
	h := New(Config{}).Others(behind)
	res := do(h, local("GET", "/", ""))
	if text := body(t, res); res.StatusCode != 200 || !strings.Contains(text, "<title>") {
		t.Error(res.StatusCode, text)
	}
}
