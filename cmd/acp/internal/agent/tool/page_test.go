package tool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

// TestPage: what pages become.
func TestPage(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "\n"},
		{"a  b\n c", "a b c\n"},
		{"<html><head><title>T</title><style>x</style></head><body><h2>Head</h2><p>Some <b>bold</b>, <i>slanted</i> <a href='/x'>link</a>.<br>More &amp; &lt;more&gt;</body>",
			"## Head\n\nSome **bold**, *slanted* [link](/x).\nMore & <more>\n"},
		{"<html><head><title>T</title><style>x</style><link rel=x><p>Not closed", "Not closed\n"},
		{"<head><meta charset=utf-8><h1>One</h1>two", "# One\n\ntwo\n"},
		{"<ul><li>one<li>two<ol><li>a</li><li>b</li></ol></li></ul>after", "- one\n- two\n  1. a\n  2. b\n\nafter\n"},
		{"<blockquote><p>a</p><p>b</p></blockquote><p>c", "> a\n>\n> b\n\nc\n"},
		{"<pre>a\n  b &lt;\n</pre>x <code>y</code>", "```\na\n  b <\n```\n\nx `y`\n"},
		{"<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2 3</td></tr></table>", "| A | B |\n|---|---|\n| 1 | 2 3 |\n"},
		{"<script>evil()</script>x<noscript>y</noscript><svg><text>z</text></svg><img alt='a cat' src=x>", "x[image: a cat]\n"},
		{"<a href='/1'>one<a href='/2'>two</a>", "[one](/1)[two](/2)\n"},
		{"<p>a</p></p></ul></blockquote></b><p>b", "a\n\nb\n"},
		{"<pre>never closed", "```\nnever closed\n```\n"},
	} {
		got, cut, err := markdown(t.Context(), tt.in, maxFetch)
		if diff := cmp.Diff(tt.want, got); diff != "" || cut || err != nil {
			t.Errorf("%s: cut %t, %v (-want +got)\n%s", tt.in, cut, err, diff)
		}
	}
}

// TestPageBounds: a page takes time and memory in proportion to its length, and no more of either after it is cancelled.
func TestPageBounds(t *testing.T) {
	heavy := map[string]string{
		"brackets": strings.Repeat("[", maxFetch), "lists": strings.Repeat("<ul><li>x", maxFetch/9), "quotes": strings.Repeat("<blockquote>x", maxFetch/13),
		"links": strings.Repeat("<a href=x>", maxFetch/10), "rows": "<table>" + strings.Repeat("<tr><td>", maxFetch/8), "marks": strings.Repeat("<b>*_`", maxFetch/7),
		"pre": strings.Repeat("<pre>`", maxFetch/6), "open": "<a " + strings.Repeat("a=b ", maxFetch/5), "ends": strings.Repeat("</li></ul>", maxFetch/10),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(heavy[strings.TrimPrefix(r.URL.Path, "/")]))
	}))
	defer server.Close()
	b := &bench{cwd: t.TempDir(), web: NewWeb(true)}
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	for name, text := range heavy {
		if got, _, err := markdown(t.Context(), text, 1<<20); len(got) > 1<<20+1 || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if res := use(Fetch, fmt.Sprintf(`{"url":"%s/%s"}`, server.URL, name)); !strings.Contains(res.Said, "Fetched") {
			t.Errorf("%s: %s", name, res.Said)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := markdown(ended, heavy["lists"], maxFetch); !errors.Is(err, context.Canceled) {
		t.Errorf("after it is cancelled: %v", err)
	}
}

// TestProxy: a proxy may have any address, and is asked for no host whose address is not public.
func TestProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("asked for " + r.URL.String()))
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := newWeb(false, func(*http.Request) (*url.URL, error) { return at, nil })
	for to, want := range map[string]string{
		"http://198.41.0.4/x": "asked for http://198.41.0.4/x", "http://10.1.2.3/": "not a public address", "http://127.0.0.1:1/": "not a public address",
		"http://192.0.0.192/": "not a public address", "http://198.18.0.1/": "not a public address", "http://240.0.0.1/": "not a public address",
		"http://[64:ff9b::7f00:1]/": "not a public address", "http://[2002:7f00:1::1]/": "not a public address", "http://[fec0::1]/": "not a public address",
	} {
		u, _ := url.Parse(to)
		text, err := fetch(t.Context(), client, u)
		if got := fmt.Sprint(text, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
		direct := newWeb(false, func(*http.Request) (*url.URL, error) { return nil, nil })
		if strings.HasPrefix(want, "not") {
			if _, err := fetch(t.Context(), direct, u); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, directly: %v", to, err)
			}
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add("<ul><li><b>x</b><pre>a</pre><table><tr><td>1</td></tr></table><blockquote>q<a href=x>y")
	f.Fuzz(func(t *testing.T, text string) {
		if got, _, err := markdown(t.Context(), text, 1000); len(got) > 1001 || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
