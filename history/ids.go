package history

import "fmt"

// ids turns the ids in a file of JSON lines into IDs. The ids of a file that this package wrote are kept. The ids
// of other systems may be any text. Then the lane of an ID is the worker, numbered in the order of appearance, and
// its number counts the worker's lines.
type ids struct {
	foreign bool
	symbols map[string]ID  // if foreign: a temporary ID for each text; operations have these IDs until finish
	notes   map[int]string // by index of the operation
}

// read sets the ids of a line's operation. The argument before has the operations of the earlier lines. If this line
// has the first foreign id, the ids of these operations become temporary ones too.
func (x *ids) read(before []Op, l *line) {
	if !x.foreign {
		ok := true
		for i, id := range l.op.ids() {
			if text := l.ids[i]; len(text) > 0 && ok {
				*id, ok = parseID(text)
			}
		}
		if ok {
			return
		}
		x.symbolize(before)
	}
	for i, id := range l.op.ids() {
		if *id = 0; len(l.ids[i]) > 0 {
			*id = x.symbol(string(l.ids[i]))
		}
	}
}

func (x *ids) symbolize(ops []Op) {
	x.foreign, x.symbols = true, make(map[string]ID, len(ops))
	for i := range ops {
		for _, id := range ops[i].ids() {
			if *id != 0 {
				*id = x.symbol(id.String())
			}
		}
	}
}

func (x *ids) symbol(text string) ID {
	s, ok := x.symbols[text]
	if !ok {
		s = ID(len(x.symbols) + 1)
		x.symbols[text] = s
	}
	return s
}

// finish sets the final IDs when all lines are read.
func (x *ids) finish(l *lines) error {
	ops := l.h.Ops
	if !x.foreign && !dense(ops) {
		x.symbolize(ops)
	}
	if x.foreign {
		if err := x.assign(l); err != nil {
			return err
		}
	}
	for i, text := range x.notes {
		if l.h.Notes == nil {
			l.h.Notes = make(map[ID]string, len(x.notes))
		}
		l.h.Notes[ops[i].ID] = text
	}
	return nil
}

// dense reports whether IDs look like those of lanes, so that arrays indexed by lane and number are small.
func dense(ops []Op) bool {
	for i := range ops {
		if most := 4*len(ops) + 1024; ops[i].ID.Lane() > most || ops[i].ID.Number() > uint64(most) {
			return false
		}
	}
	return true
}

// track is the source of one lane: a worker or its watchdog.
type track struct {
	process  int16
	worker   int32
	watchdog bool
}

func (x *ids) assign(l *lines) error {
	tracks := map[track]ID{}
	numbers := []ID{}
	assigned := make([]ID, len(x.symbols)+1)
	defined := make([]int32, len(x.symbols)+1)
	for i := range l.h.Ops {
		op := &l.h.Ops[i]
		t := track{op.Process, op.Worker, op.Kind == Extend}
		lane, ok := tracks[t]
		if !ok {
			lane = ID(len(tracks))
			tracks[t] = lane
			numbers = append(numbers, 0)
		}
		if first := defined[op.ID]; first != 0 {
			return &formatError{Line: int(l.at[i]), What: fmt.Sprintf("the id of line %d again", first)}
		}
		numbers[lane]++
		defined[op.ID], assigned[op.ID] = l.at[i], (lane+1)<<idLaneShift|numbers[lane]
	}
	lost := ID(0)
	for i := range l.h.Ops {
		op := &l.h.Ops[i]
		for _, id := range op.ids() {
			if *id != 0 && assigned[*id] == 0 {
				if l.h.Partial == "" {
					return &formatError{Line: int(l.at[i]),
						What: "its hold, or what it has seen, is the id of no operation"}
				}
				lost++
				assigned[*id] = ID(len(tracks)+1)<<idLaneShift | lost
			}
			if *id != 0 {
				*id = assigned[*id]
			}
		}
	}
	return nil
}
