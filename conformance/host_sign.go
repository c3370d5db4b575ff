package conformance

import "github.com/goacp/acp/internal/pattern"

// sign signs in or out. To sign in may need a person, and to sign out may lose what
// they have signed in with: both are done where the options ask for it, and with agents
// that follow the script of our test suites.
func (h *host) sign(p *player, s *step) error {
	method, params := "auth/"+s.verb, "{}"
	if h.version == 1 {
		method = map[string]string{"login": "authenticate", "logout": "logout"}[s.verb]
	}
	if s.verb == "login" {
		id := p.opt.Login
		if list := h.init.Get("authMethods"); id == "" && h.scripted && list != nil {
			for _, v := range list.Elems {
				if t := v.StringAt("type"); id == "" && (t == "" || t == "agent") {
					id = v.StringAt(map[int]string{1: "id", 2: "methodId"}[h.version])
				}
			}
		}
		if id == "" {
			return unseen("nobody has said which way to sign in to try")
		}
		params = `{"methodId":` + pattern.Quote(id) + `}`
	} else if !h.scripted && !p.opt.Logout {
		return unseen("nobody has asked to sign out")
	}
	_, err := p.call(s.name, method, params)
	return err
}
