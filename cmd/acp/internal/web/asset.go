package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// types are the media types of files; others are not served.
var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".txt":         "text/plain; charset=utf-8", // licences
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".webmanifest": "application/manifest+json",
}

// hashed are names that another content would not have.
var hashed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-[0-9A-Z]{8}\.(js|css)$`) })

// An asset is a file of the page.
type asset struct {
	kind       string // the media type
	caching    string
	isDocument bool // and not what one loads

	// Each is made when it is first asked for: a server whose page nobody opens keeps none of it.
	data   func() []byte
	tag    func() string // the hash of data
	zipped func() []byte // data compressed, or nil if that is not smaller
}

// load returns the files by their paths, but not those of the page of a tap. Each is compressed once, when it is first asked for, so what is kept of
// all is less than the files.
func load(from fs.FS) map[string]*asset {
	all := make(map[string]*asset)
	_ = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		kind, ok := types[path.Ext(name)]
		if err != nil || d.IsDir() || !ok || strings.HasPrefix(name, "tap.") {
			return err
		}
		a := &asset{kind: kind, caching: "no-cache", isDocument: path.Ext(name) == ".html"}
		if hashed().MatchString(name) {
			a.caching = "public, max-age=31536000, immutable"
		}
		a.data = sync.OnceValue(func() []byte {
			data, _ := fs.ReadFile(from, name) // which is in the program
			return data
		})
		a.tag = sync.OnceValue(func() string {
			sum := sha256.Sum256(a.data())
			return hex.EncodeToString(sum[:16])
		})
		a.zipped = sync.OnceValue(func() []byte { return zip(kind, a.data()) })
		at := "/" + name
		if at == "/index.html" {
			at = "/"
		}
		all[at] = a
		return nil
	})
	return all
}

// zip compresses a file, unless it is compressed already.
func zip(kind string, data []byte) []byte {
	if kind == "image/png" {
		return nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil
	}
	_, err = w.Write(data)
	if err != nil || w.Close() != nil || b.Len() >= len(data) {
		return nil
	}
	return bytes.Clone(b.Bytes())
}

// serve answers GET and HEAD.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h, data, tag := w.Header(), a.data(), `"`+a.tag()+`"`
	if z := a.zipped(); z != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header) { // which is another representation, with another tag
			data, tag = z, `"`+a.tag()+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Cache-Control", a.caching)
	h.Set("ETag", tag)
	if matches(r.Header, tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.kind)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // the client may have left
	}
}

// matches reports whether a client has what has the tag.
func matches(h http.Header, tag string) bool {
	for _, field := range h.Values("If-None-Match") {
		for one := range strings.SplitSeq(field, ",") { // none of our tags has a comma in it
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// acceptsGzip reports whether a client can decompress: RFC 9110, section 12.5.3.
func acceptsGzip(h http.Header) bool {
	accepts := false
	for _, field := range h.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(field, ",") {
			name, params, _ := strings.Cut(one, ";")
			key, value, _ := strings.Cut(params, "=")
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			refuses := strings.EqualFold(strings.TrimSpace(key), "q") && (err != nil || !(q > 0))
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				return !refuses
			case "*":
				accepts = !refuses
			}
		}
	}
	return accepts
}
