package checker

// examine finds all violations of exclusion. Several checkers use the result.
func (c *Case) examine() *findings {
	c.once.Do(func() {
		x := &examiner{c: c, sweeper: newSweeper(c),
			findings: findings{misses: map[string]int64{}, incidents: map[string]int64{}}}
		for _, holds := range c.byKey {
			x.key(holds)
		}
		x.phantoms()
		c.findings = x.findings
	})
	return &c.findings
}

// key finds the violations among the holds of a key. A hold is blamed once, by the strongest evidence.
func (x *examiner) key(holds []int32) {
	x.blamed = map[int32]bool{}
	x.told = x.c.tell(holds)
	s := x.sweeper
	if x.c.Claims.Permits > 0 {
		x.semaphore(holds)
	} else {
		x.pairs(holds)
	}
	x.doubles()
	s.overruns(holds, func(p pair) {
		if p.second < 0 {
			x.misses["overrun"]++
		} else {
			x.add(x.late(p))
		}
	})
}

// pairs finds overlapping holds that exclude each other.
func (x *examiner) pairs(holds []int32) {
	s, possible := x.sweeper, map[int32]bool{}
	s.beliefs(holds, func(p pair, certain bool) {
		if !certain {
			possible[p.second] = true
			return
		}
		x.blamed[p.second] = true
		x.doubled++
		x.collision(p)
	})
	// On several sites a hold begins with the last site of a majority and ends with the first one. So a hold that
	// begins late need not end late.
	coupled := x.c.Sites < 2
	groups := x.c.groups(holds)
	for _, g := range groups {
		s.scope = g.scope
		s.losses(g.holds, coupled, x.loss)
		s.proven(g.holds, coupled, x.loss)
	}
	if s.scope = asRead; len(groups) > 1 {
		s.losses(holds, coupled, func(p pair) { possible[p.second] = true })
	}
	for n := range possible {
		if !x.blamed[n] {
			x.misses["possible"]++
		}
	}
}
