module pequod.io/program

go 1.26.0
