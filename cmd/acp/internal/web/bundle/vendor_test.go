//go:build unix

package main

import (
	"encoding/json"
	"testing"
)

// TestVendor: what agents say in metadata is shown by the page as far as it is understood, on one line.
func TestVendor(t *testing.T) {
	tb, _ := openBundle(t, map[string][]byte{
		"cases.js": []byte(`import * as vendor from "/vendor.js"; globalThis.vendor = vendor;`),
		"":         []byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Cases</title><link rel="icon" href="data:,"><script type="module" src="/cases.js"></script></head><body></body></html>`),
	}, nil, "vendor.ts")
	tb.Until("globalThis.vendor")
	const table = `[
		[vendor.limitIn({"_claude/rateLimit":{"status":"allowed_warning","rateLimitType":"five_hour","utilization":0.914}}, 0), "5-hour limit 91% used"],
		[vendor.limitIn({"_claude/rateLimit":{"status":"rejected","rateLimitType":"seven_day"}}, 0), "weekly limit reached"],
		[vendor.limitIn({"_claude/rateLimit":{"status":"rejected","rateLimitType":"one_month","resetsAt":5}}, 5000), ""],
		[/^one month reached, resets ./.test(vendor.limitIn({"_claude/rateLimit":{"status":"rejected","rateLimitType":"one_month","resetsAt":5}}, 4999)), true],
		[vendor.limitIn({"_claude/rateLimit":{"status":"allowed","utilization":1}}, 0), ""],
		[vendor.limitIn({"_claude/rateLimit":7}, 0) + vendor.limitIn(null, 0) + vendor.limitIn("x", 0) + vendor.limitIn([1], 0), ""],
		[vendor.modelIn({"_claude/model":"opus"}), "opus"],
		[vendor.modelIn({"_claude/model":{}}), ""],
		[vendor.parentIn({"claudeCode":{"parentToolUseId":"p"}}), "p"],
		[vendor.parentIn({"claudeCode":"p"}), ""],
		[vendor.worksOn({"codex":{"delivery":"async"}}), true],
		[vendor.worksOn({"codex":{"delivery":"inline"}}), false],
		[vendor.taskIn({"type":"_claude/task","taskId":"t","description":"Watch the build"}), "Watch the build"],
		[vendor.taskIn({"type":"_x"}), "a task of the agent (_x)"],
		[vendor.taskIn({"type":"terminal","terminalId":"t"}), ""],
	]`
	var wrong []json.RawMessage
	tb.Eval(table+`.filter(([got, want]) => got !== want)`, &wrong)
	for _, w := range wrong {
		t.Errorf("%s", w)
	}
}
