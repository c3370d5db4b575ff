//go:build unix

package acp_test

import (
	"fmt"

	"github.com/goacp/acp"
)

// A link to a file, which every agent takes in prompts.
func ExampleFile() {
	link := acp.File("/home/me/project/a b.go")
	fmt.Println(link.Name)
	fmt.Println(link.URI)
	// Output:
	// a b.go
	// file:///home/me/project/a%20b.go
}
