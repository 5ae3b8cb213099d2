package measure

import "time"

// ends has the number of visits that ended in each time slot. Counters of servers and clients are read a little late,
// so each reading is divided by the number of visits that had ended by then.
type ends struct {
	from, cell time.Duration
	counts     [400]int64
}

// newEnds makes slots for the measurement, and for a third of its length after it.
func newEnds(from, to time.Duration) ends {
	return ends{from: from, cell: max(4*(to-from)/3/time.Duration(len(ends{}.counts)), 1)}
}

// add counts a visit that ended at the given time. The last slot also has all later visits.
func (e *ends) add(at time.Duration) {
	e.counts[min(int64((at-e.from)/e.cell), int64(len(e.counts)-1))]++
}

// Between returns the number of counted visits that ended between two times. A slot that lies partly inside
// contributes in proportion.
func (m *Meter) Between(from, to time.Duration) (n float64) {
	for i, count := range m.ends.counts {
		begin := m.ends.from + time.Duration(i)*m.ends.cell
		if inside := min(to, begin+m.ends.cell) - max(from, begin); inside > 0 {
			n += float64(count) * float64(inside) / float64(m.ends.cell)
		}
	}
	return n
}
