// Command oneshot asks an agent one thing: oneshot PROMPT AGENT [ARG...]
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/goacp/acp"
)

func main() {
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.Command(os.Args[2], os.Args[3:]...))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for u, err := range session.Prompt(ctx, acp.Text(os.Args[1])).Updates() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(u.Text())
	}
}
