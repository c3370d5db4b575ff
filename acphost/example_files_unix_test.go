//go:build unix

package acphost_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// An editor lends its files, with the changes that the user has not saved.
func ExampleDir() {
	root, err := os.MkdirTemp("", "project")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	path := filepath.Join(root, "main.go")
	if err := os.WriteFile(path, []byte("package main\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	files := acphost.Dir(root)
	files.Overlay = func(path string) (string, bool) { // the open buffers
		return "package main // edited\n", filepath.Base(path) == "main.go"
	}

	agent := acp.Agent{
		MaxVersion: 1, // version 2 has no files of the client
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			text, err := t.ReadFile(path)
			if err != nil {
				return "", err
			}
			return acp.StopEndTurn, t.Say(text)
		},
	}
	client := acp.Client{Files: files}
	ctx := context.Background()
	conn, err := client.Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: root})
	if err != nil {
		log.Fatal(err)
	}
	said, _, err := session.Prompt(ctx, acp.Text("show it")).Text()
	fmt.Println(said, err)
	// Output:
	// package main // edited
	//  <nil>
}
