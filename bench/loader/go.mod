module pequod.io/bench/loader

go 1.26
