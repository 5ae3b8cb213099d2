package measure

import "time"

// ends counts how many visits have ended, in time slots. Counters of servers and clients are read a little late; each
// reading is divided by the number of visits up to that moment.
type ends struct {
	from, cell time.Duration
	counts     [400]int64
}

// newEnds makes slots for the measurement and a third of its length more.
func newEnds(from, to time.Duration) ends {
	return ends{from: from, cell: max(4*(to-from)/3/time.Duration(len(ends{}.counts)), 1)}
}

// add counts the end of a visit. Anything after the last slot counts there.
func (e *ends) add(at time.Duration) {
	e.counts[min(int64((at-e.from)/e.cell), int64(len(e.counts)-1))]++
}

// Between is the number of counted visits that ended between two moments. Slots at the edges contribute in proportion.
func (m *Meter) Between(from, to time.Duration) (n float64) {
	for i, count := range m.ends.counts {
		begin := m.ends.from + time.Duration(i)*m.ends.cell
		if inside := min(to, begin+m.ends.cell) - max(from, begin); inside > 0 {
			n += float64(count) * float64(inside) / float64(m.ends.cell)
		}
	}
	return n
}
