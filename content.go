package acp

import (
	"encoding/base64"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// Text returns a text block.
func Text(s string) *TextContent { return &TextContent{Text: s} }

// Image returns a picture to be sent inline: data is the file's bytes, of the media
// type mime, such as image/png. Prompts with an image fail with an error that wraps
// [errors.ErrUnsupported] if the agent does not take images.
func Image(mime string, data []byte) *ImageContent {
	return &ImageContent{MIMEType: mime, Data: base64.StdEncoding.EncodeToString(data)}
}

// Audio returns a recording to be sent inline: data is the file's bytes, of the media
// type mime, such as audio/wav. Prompts with audio fail with an error that wraps
// [errors.ErrUnsupported] if the agent does not take audio.
func Audio(mime string, data []byte) *AudioContent {
	return &AudioContent{MIMEType: mime, Data: base64.StdEncoding.EncodeToString(data)}
}

// File returns a link to the file or directory at path, with its last element as the
// name. Every agent takes links in prompts. A relative path is relative to the working
// directory of this process, whatever the session's is. The file is not looked at and
// need not exist.
func File(path string) *ResourceLink {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return &ResourceLink{Name: filepath.Base(path), URI: fileURI(path, runtime.GOOS == "windows")}
}

// fileURI returns the URI of an absolute path, in the form of RFC 8089. A Windows path
// begins with a drive, or with the name of a host.
func fileURI(path string, windows bool) string {
	u := url.URL{Scheme: "file", Path: path}
	if !windows {
		return u.String()
	}
	u.Path = strings.ReplaceAll(path, `\`, "/")
	if host, rest, ok := strings.Cut(strings.TrimPrefix(u.Path, "//"), "/"); strings.HasPrefix(u.Path, "//") && ok {
		u.Host, u.Path = host, "/"+rest
	} else {
		u.Path = "/" + u.Path
	}
	return u.String()
}
