// Marks the drivers as no part of the suite. Each is built with the modules of its release: VERSION.mod in its folder.
module record

go 1.26.0
