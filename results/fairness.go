package results

import "time"

// starvingShare is the part of its fair share under which a worker starves.
const starvingShare = 0.1

// Fairness says how the lock was shared among the workers.
type Fairness struct {
	// Jain is Jain's index of the workers' counted visits (DEC-TR-301, 1984): 1 if all had as many, 1/n if one had all.
	Jain            float64 `json:"jain"`
	Starving        int     `json:"starving"`
	StarvingWorkers []int   `json:"starving_workers"`
	Worst           Worker  `json:"worst_worker"` // with the fewest visits, of those the one with the longest wait
	// IdleShare is the part of the time in which the lock was held or waited for that it stood idle although
	// somebody waited. Null if the lock does not exclude.
	IdleShare *float64 `json:"idle_share"`
	// Workers are what all workers got, by number; nil in runs saved before it was kept.
	Workers []Worker `json:"workers,omitempty"`
}

// Worker is what one worker got.
type Worker struct {
	Worker  int   `json:"worker"`
	Visits  int64 `json:"visits"`
	Mean    int64 `json:"mean_wait_ns"`    // unfinished waits count with what was seen of them
	Longest int64 `json:"longest_wait_ns"` // as above
}

func (m *Meter) fairness() Fairness {
	f := Fairness{StarvingWorkers: []int{}}
	var sum, squares float64
	for _, w := range m.workers {
		v := float64(w.finish)
		sum += v
		squares += v * v
	}
	n := float64(len(m.workers))
	if sum > 0 {
		f.Jain = sum * sum / (n * squares)
	}
	for i, w := range m.workers {
		if float64(w.finish) < starvingShare*sum/n {
			f.StarvingWorkers = append(f.StarvingWorkers, i)
		}
		if worst := &m.workers[f.Worst.Worker]; w.finish < worst.finish || w.finish == worst.finish && w.longest > worst.longest {
			f.Worst.Worker = i
		}
	}
	f.Starving = len(f.StarvingWorkers)
	for i, w := range m.workers {
		worker := Worker{Worker: i, Visits: w.finish, Longest: int64(w.longest)}
		if w.waits > 0 {
			worker.Mean = int64(w.waited / time.Duration(w.waits))
		}
		f.Workers = append(f.Workers, worker)
	}
	if len(f.Workers) > 0 {
		f.Worst = f.Workers[f.Worst.Worker]
	}
	if wanted := m.held + m.idleWaited; m.excludes && wanted > 0 {
		share := float64(m.idleWaited) / float64(wanted)
		f.IdleShare = &share
	}
	return f
}
