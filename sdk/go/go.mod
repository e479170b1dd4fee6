module example.com/sso

go 1.19
