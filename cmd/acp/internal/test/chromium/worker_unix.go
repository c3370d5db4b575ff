//go:build unix

package chromium

import "time"

// Permit grants or denies the page at an origin a permission, by its name in the Permissions API.
func (tb *Tab) Permit(origin, name, setting string) {
	tb.t.Helper()
	tb.must(tb.c.call("", "Browser.setPermission", Object{"permission": Object{"name": name}, "setting": setting, "origin": origin, "browserContextId": tb.profile}, nil))
}

// Deliver has the service worker of an origin get a message, as the push service of the browser would.
func (tb *Tab) Deliver(origin, data string) {
	tb.t.Helper()
	tb.Do("ServiceWorker.enable", Object{}, nil)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case id := <-tb.registered:
		tb.Do("ServiceWorker.deliverPushMessage", Object{"origin": origin, "registrationId": id, "data": data}, nil)
		tb.registered <- id // there is one of each origin
	case <-timer.C:
		tb.t.Fatal("there is no service worker")
	}
}

// Worker returns the service worker of the page, in which expressions can be evaluated.
func (tb *Tab) Worker() *Tab {
	tb.t.Helper()
	tb.Eval("navigator.serviceWorker.ready.then(() => true)", nil)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		var all struct {
			TargetInfos []struct{ TargetID, Type, BrowserContextID string }
		}
		tb.must(tb.c.call("", "Target.getTargets", Object{}, &all))
		for _, target := range all.TargetInfos {
			if target.Type != "service_worker" || target.BrowserContextID != tb.profile {
				continue
			}
			var attached struct{ SessionID string }
			tb.must(tb.c.call("", "Target.attachToTarget", Object{"targetId": target.TargetID, "flatten": true}, &attached))
			return &Tab{t: tb.t, c: tb.c, session: attached.SessionID, profile: tb.profile}
		}
		tb.Drawn()
	}
	tb.t.Fatal("the service worker does not run")
	return nil
}
