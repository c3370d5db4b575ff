// Package assets has the files of the two pages: that of the gateway, and that of a tap, whose files are called tap. Both
// are made of the sources in src, by one run of the bundler, and load the same chunks.
package assets

import "embed"

// Files are the files, without folders.
//
//go:embed *.html *.css *.js *.png *.svg *.txt *.webmanifest
var Files embed.FS
