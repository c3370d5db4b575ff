package chat

import (
	"context"
	"errors"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// runPlain holds the conversation line by line.
func runPlain(context.Context, *app.App, roster.Agent, acp.SessionID, string) error {
	return errors.New("lines instead of a screen are not there yet")
}
