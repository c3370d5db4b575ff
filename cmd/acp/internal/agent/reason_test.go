package agent

import (
	"context"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// brokenFiles are a client's files that cannot be read, and it says why in the data of its error.
type brokenFiles struct{}

func (brokenFiles) fail() error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error").WithData(map[string]string{"details": "the buffer is gone"})
}

func (b brokenFiles) ReadTextFile(context.Context, *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return nil, b.fail()
}

func (b brokenFiles) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return nil, b.fail()
}

// TestReason holds that the agent tells the reason of a client's error.
func TestReason(t *testing.T) {
	k := start(t, 1, func(k *talk) { k.client.Files = brokenFiles{} })
	contains(t, k.tell("/read main.go"), "the buffer is gone")
	contains(t, k.tell("/write new.txt x"), "the buffer is gone")
}
