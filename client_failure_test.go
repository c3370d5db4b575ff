package acp

import (
	"errors"
	"testing"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// TestReplyFailed holds that a turn that failed looks the same in both versions:
// the error says what the agent said, and is the last thing a loop sees.
func TestReplyFailed(t *testing.T) {
	const failure = `{"code":-32050,"message":"slow down","data":{"reason":"rate_limit","retryAfter":2,"scope":"account"}}`
	tests := []struct {
		name, said string // "" is nothing
		want       error
	}{
		{"a failure", failure, &Failure{Code: -32050, Message: "slow down", Reason: "rate_limit", RetryAfter: 2 * time.Second, Scope: "account"}},
		{"nothing said", "", jsonrpc.ErrInternal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
				r := s.Prompt(t.Context(), Text("hi"))
				asked := a.next("session/prompt")
				switch {
				case s.conn.Version() == 1 && tt.said != "":
					a.send(`{"jsonrpc":"2.0","id":%s,"error":%s}`, asked.ID, tt.said)
				case s.conn.Version() == 1:
					a.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error"}}`, asked.ID)
				default:
					a.answer(asked, `{"messageId":"m"}`)
					a.state("running", "")
					fields := `"stopReason":"error","usage":{"totalTokens":3,"inputTokens":1,"outputTokens":2}`
					if tt.said != "" {
						fields += `,"error":` + tt.said
					}
					a.state("idle", fields)
				}
				_, last := r.collect()
				res, err := r.Wait()
				if last == nil || !errors.Is(err, last) {
					t.Errorf("the loop ends with %v, Wait returns %v", last, err)
				}
				if f, ok := tt.want.(*Failure); ok {
					got, _ := AsFailure(err)
					want(t, "failure", got, f)
				} else if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if s.conn.Version() == 2 && (res == nil || res.StopReason != StopError || res.Usage == nil) {
					t.Errorf("result %+v", res)
				}
			})
		})
	}
}
