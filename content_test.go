package acp

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileURI(t *testing.T) {
	for _, x := range []struct {
		path    string
		windows bool
		want    string
	}{
		{"/", false, "file:///"},
		{"/home/me/a.go", false, "file:///home/me/a.go"},
		{"/a b/ü?#%20;x.go", false, "file:///a%20b/%C3%BC%3F%23%2520;x.go"},
		{`/back\slash`, false, "file:///back%5Cslash"},
		{"//double/slash", false, "file:////double/slash"},
		{`C:\Users\me\a b.go`, true, "file:///C:/Users/me/a%20b.go"},
		{`C:/Users/me`, true, "file:///C:/Users/me"},
		{`\\host\share\a.go`, true, "file://host/share/a.go"},
	} {
		got := fileURI(x.path, x.windows)
		if got != x.want {
			t.Errorf("%s: %s, want %s", x.path, got, x.want)
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "file" {
			t.Errorf("%s: %v, %v", x.path, u, err)
		} else if !x.windows && u.Path != x.path {
			t.Errorf("%s is read back as %s", x.path, u.Path)
		}
	}
}

func TestContent(t *testing.T) {
	l := File("a b.go")
	absolute, err := filepath.Abs("a b.go")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(l.URI)
	if err != nil || l.Name != "a b.go" || !strings.HasSuffix(u.Path, "/a b.go") || !strings.HasSuffix(u.Path, filepath.ToSlash(absolute)) {
		t.Errorf("%+v, %v", l, err)
	}
	data := []byte{0, 0xff, 0x10, '\n'}
	image, audio := Image("image/png", data), Audio("audio/wav", data)
	for _, x := range []struct{ mime, want, text string }{
		{image.MIMEType, "image/png", image.Data},
		{audio.MIMEType, "audio/wav", audio.Data},
	} {
		if b, err := base64.StdEncoding.DecodeString(x.text); err != nil || !bytes.Equal(b, data) || x.mime != x.want {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
