package tui

import (
	"context"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// The bounds of attachments.
const (
	maxImage    = 20 << 20  // bytes of a picture
	maxEmbedded = 128 << 10 // bytes of a file whose text is embedded; a longer file becomes a link
	maxMentions = 64        // files in a prompt
)

// An image is a picture that was pasted.
type image struct {
	name string // its placeholder in the text
	mime string
	data []byte
}

// mentioned finds @path and @"path" at the beginning of words.
var mentioned = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s(])@(?:"([^"\n]+)"|([^\s"]+))`) })

// compose turns typed text into the content of a prompt: the text itself and, for each file that it
// mentions, a picture, the file's text or a link, depending on what the agent accepts. remarks
// reports what could not be sent.
func compose(ctx context.Context, cwd, text string, long map[string]string, images []image, takes acp.PromptContent) (blocks []acp.ContentBlock, remarks []string) {
	var more []acp.ContentBlock
	for _, img := range images {
		if !takes.Image {
			remarks = append(remarks, "the agent does not accept pictures: "+img.name+" was not sent")
			text = strings.ReplaceAll(text, img.name, "")
			continue
		}
		more = append(more, &acpv2.ImageContent{Data: base64.StdEncoding.EncodeToString(img.data), MIMEType: img.mime})
	}
	seen := map[string]bool{}
	for _, found := range mentioned().FindAllStringSubmatch(text, -1) {
		path := found[1] + found[2]
		if found[1] == "" {
			path = existing(cwd, path)
		}
		path = filepath.Clean(resolve(cwd, path))
		if seen[path] || len(seen) == maxMentions || ctx.Err() != nil {
			continue
		}
		block, remark := attach(path, takes)
		if remark != "" {
			remarks = append(remarks, remark)
		}
		if block != nil {
			seen[path] = true
			more = append(more, block)
		}
	}
	for name, s := range long { // what comes first is a text of its own: it only goes with the prompt
		if rest, ok := strings.CutPrefix(text, name); ok && strings.TrimSpace(rest) != "" {
			blocks, text = append(blocks, acp.Text(strings.TrimSpace(s))), rest
			break
		}
	}
	for name, s := range long {
		text = strings.ReplaceAll(text, name, s)
	}
	if text = strings.TrimSpace(text); text != "" {
		blocks = append(blocks, acp.Text(text))
	}
	return append(blocks, more...), remarks
}

// existing removes punctuation from the end of a path until the file exists: a mention often ends a
// sentence.
func existing(cwd, path string) string {
	for p := path; p != ""; p = p[:len(p)-1] {
		if _, err := os.Stat(resolve(cwd, p)); err == nil {
			return p
		}
		if !strings.ContainsAny(p[len(p)-1:], ".,;:!?)]}'") {
			break
		}
	}
	return path
}

// attach returns the content block for a file, or nil if the file does not exist.
func attach(path string, takes acp.PromptContent) (acp.ContentBlock, string) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, "" // just a word that begins with @, such as a user name
	}
	name := filepath.Base(path)
	uri := fileURI(path)
	n := uint64(max(0, st.Size()))
	link := &acpv2.ResourceLink{Name: name, URI: uri, MIMEType: mime.TypeByExtension(filepath.Ext(path))}
	if st.IsDir() {
		link.MIMEType = "inode/directory"
		return link, ""
	}
	link.Size = &n
	if !st.Mode().IsRegular() {
		return nil, one(name) + " is not a file"
	}
	if kind := imageType(path); kind != "" {
		switch {
		case !takes.Image:
			return link, "the agent does not accept pictures: " + one(name) + " is sent as a link"
		case st.Size() > maxImage:
			return link, fmt.Sprintf("%s has more than %d MB and is sent as a link", one(name), maxImage>>20)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return link, one(err.Error())
		}
		return &acpv2.ImageContent{Data: base64.StdEncoding.EncodeToString(data), MIMEType: kind, URI: uri}, ""
	}
	if !takes.EmbeddedContext || st.Size() > maxEmbedded {
		return link, ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return link, one(err.Error())
	}
	if !utf8.Valid(data) || strings.IndexByte(string(data), 0) >= 0 {
		return link, ""
	}
	kind := link.MIMEType
	if kind == "" {
		kind = "text/plain"
	}
	return &acpv2.EmbeddedResource{Resource: &acpv2.TextResourceContents{Text: string(data), URI: uri, MIMEType: kind}}, ""
}

// fileURI returns the file: URI of a path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// imageType returns the media type of a picture by its file name, or "".
func imageType(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	}
	return ""
}

// sniff returns the media type of a picture by its content, or "".
func sniff(data []byte) string {
	if t := http.DetectContentType(data); strings.HasPrefix(t, "image/") {
		return t
	}
	return ""
}

// droppedPath returns the path of a picture that was dropped on the terminal. Terminals paste the
// path in that case, quoted in various ways. ok is false for any other text.
func droppedPath(text string) (path string, ok bool) {
	s := strings.TrimSpace(text)
	if s == "" || len(s) > 4096 || strings.ContainsAny(s, "\n\r") {
		return "", false
	}
	if n := len(s); n > 1 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
		s = s[1 : n-1]
	} else if runtime.GOOS != "windows" {
		s = strings.ReplaceAll(s, `\ `, " ")
	}
	if u, err := url.Parse(s); err == nil && u.Scheme == "file" {
		s = u.Path
	}
	if imageType(s) == "" || !filepath.IsAbs(s) {
		return "", false
	}
	return s, true
}
