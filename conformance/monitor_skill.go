package conformance

import "github.com/goacp/acp/acpv2"

var (
	ckCapSkills    = decides("agent/capability/skills")
	ckSkillPrompts = decides("agent/skill/prompts")
	ckSkillPath    = decides("agent/skill/path")
	ckCapSkill     = decides("client/capability/skill")
	ckSkillFirst   = decides("client/skill/first")
	ckSkillOffered = decides("client/skill/offered")
)

// skill looks at a skill that an agent offers.
func (m *Monitor) skill(path string, k *acpv2.Skill) {
	m.wanted(ckCapSkills, m.client.skills, path, "session.commands.skill")
	if !m.agent.unknown && m.ready && m.breaks(ckSkillPrompts, !m.agent.skill) {
		m.add(ckSkillPrompts, path, "offered the skill %s, and takes none in prompts", quote(k.Name))
	}
	if k.Path != "" && m.breaks(ckSkillPath, !absolute(k.Path)) {
		m.add(ckSkillPath, path, "offered the skill %s of %s, which is not absolute", quote(k.Name), quote(k.Path))
	}
}

// skilled looks at the skills that a prompt uses.
func (m *Monitor) skilled(s *session, blocks []acpv2.ContentBlock) {
	used := 0
	for i, b := range blocks {
		k, ok := b.(*acpv2.SkillReference)
		if !ok {
			continue
		}
		used++
		m.offered1(ckCapSkill, m.agent.skill, "params.prompt", "skills in prompts")
		plain := !m.agent.unknown && m.agent.skill && !m.agent.inline
		if m.breaks(ckSkillFirst, plain && (i > 0 || used > 1)) {
			m.add(ckSkillFirst, "params.prompt",
				"used the skill %s behind other content, which the agent has not advertised", quote(k.Name))
		}
		if s == nil || s.skills == nil {
			continue
		}
		if m.breaks(ckSkillOffered, !s.skills[brief(k.Name)] && len(s.skills) < maxEntries) {
			m.add(ckSkillOffered, "params.prompt", "used the skill %s, which was not offered", quote(k.Name))
		}
	}
}
