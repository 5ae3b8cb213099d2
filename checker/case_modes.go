package checker

import (
	"fmt"
)

// clash tells whether two holds exclude each other: one is exclusive, or there are not enough permits for both.
func (c *Case) clash(a, b uint16) bool {
	return a == 0 || b == 0 || c.Claims.Permits > 0 && int(a)+int(b) > c.Claims.Permits
}

// weight is the number of permits that a hold of a semaphore has.
func (c *Case) weight(h *hold) int {
	if h.Permits == 0 {
		return c.Claims.Permits
	}
	return int(h.Permits)
}

// mode describes how a hold shares the lock; empty if it is exclusive.
func (c *Case) mode(h *hold) string {
	switch {
	case h.Permits == 0:
		return ""
	case c.Claims.Permits == 0:
		return ", as a reader,"
	}
	return fmt.Sprintf(", %d of %d permits,", h.Permits, c.Claims.Permits)
}
