package acp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/goacp/acp"
)

// A prompt with a picture, for an agent that takes pictures.
func ExampleImage() {
	agent := acp.Agent{
		Content: acp.PromptContent{Image: true},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			for _, block := range t.Blocks() {
				if image, ok := block.(*acp.ImageContent); ok {
					t.Say("I see an " + image.MIMEType + ".")
				}
			}
			return acp.StopEndTurn, t.Err()
		},
	}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	png := []byte("\x89PNG\r\n\x1a\n") // the bytes of a file
	said, _, err := session.Prompt(ctx, acp.Text("What is this?"), acp.Image("image/png", png)).Text()
	fmt.Println(said, err)

	_, err = session.Prompt(ctx, acp.Audio("audio/wav", nil)).Wait()
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	// Output:
	// I see an image/png. <nil>
	// true
}

// The bytes of a recording.
func ExampleAudio() {
	wav := []byte("RIFF")
	block := acp.Audio("audio/wav", wav)
	fmt.Println(block.MIMEType, block.Data)
	// Output: audio/wav UklGRg==
}

// An update changes what it sets, and leaves the rest alone.
func ExamplePatch() {
	title, status := "Read main.go", "reading"
	update := acp.ToolCallUpdate{Title: acp.Set("Read all files")}

	update.Title.Apply(&title)
	if s, ok := update.Status.Get(); ok {
		status = string(s)
	}
	fmt.Println(title, status)
	fmt.Println(update.Status.IsZero(), acp.Clear[string]().IsClear())
	// Output:
	// Read all files reading
	// true true
}
