// C++ exceptions through several frames, destructors on the way, virtual calls, std::string and std::map.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

struct counted {
	static int alive;
	counted()
	{
		alive++;
	}
	~counted()
	{
		alive--;
	}
};
int counted::alive;

struct shape {
	virtual ~shape()
	{
	}
	virtual int area() const = 0;
};
struct square : shape {
	int side;
	explicit square(int s) : side(s)
	{
	}
	int area() const override
	{
		return side * side;
	}
};
struct bad : shape {
	int area() const override
	{
		throw std::runtime_error("no area");
	}
};

static int depth(int n, const shape &s)
{
	counted c;
	return n == 0 ? s.area() : depth(n - 1, s) + 1;
}

int main()
{
	std::map<std::string, int> seen;
	for (int i = 0; i < 6; i++) {
		square q(i);
		bad b;
		try {
			seen["square"] += depth(5, q);
			seen["bad"] += depth(i, b);
		} catch (const std::runtime_error &e) {
			seen[e.what()]++;
		}
	}
	for (const auto &p : seen)
		std::printf("%s %d\n", p.first.c_str(), p.second);
	return counted::alive;
}
