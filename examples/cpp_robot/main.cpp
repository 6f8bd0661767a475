// Controller of a robot with legs: reads its sensors, moves it to home, lets an exported policy walk, and brakes.
//
// The robot is the simulated one of run.py, over UDP on the loopback; for another one replace `Link`. Policies with
// further sensors need them in `measure`.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "policy.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kStart = 2.0, kStop = 1.0;     // of the soft start and of the damping stop [s]
#ifndef STALE
#define STALE 0.1
#define LATE 0.1
#endif
constexpr double kStale = STALE, kLate = LATE;  // oldest message, latest control step [s]
constexpr double kTilt = 1.0, kSpeed = 40.0;    // of the trunk [rad], of a joint [rad/s]
constexpr double kDamping = 2.0;                // of a stop [N m s/rad]
constexpr double kDamp = 0, kMove = 1, kAct = 2;  // modes of a command
constexpr double kCommandPacket = 1, kStatePacket = 3;

volatile std::sig_atomic_t interrupted = 0;

struct State {
  Clock::time_point received;
  std::vector<double> angles, speeds;  // in the robot's order [rad, rad/s]
  double quaternion[4], gyro[3];       // w, x, y, z; in the axes of the trunk [rad/s]

  // Component of the unit vector downwards in the axes of the trunk.
  double gravity(int axis) const {
    const auto& [w, x, y, z] = quaternion;
    const double down[] = {2 * (w * y - x * z), -2 * (w * x + y * z), x * x + y * y - w * w - z * z};
    return down[axis] / (w * w + x * x + y * y + z * z);
  }
};

// Packets of float64 numbers: the kind, then for a command mode, targets, kp and kd, for a state time, angles,
// speeds, torques, quaternion and gyro.
class Link {
 public:
  Link(int port, std::size_t joints) : joints_(joints), socket_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::perror("connect");
  }
  ~Link() { close(socket_); }

  void write(double mode, const std::vector<double>& targets, const std::vector<double>& kp,
             const std::vector<double>& kd) const {
    std::vector<double> packet = {kCommandPacket, mode};
    for (const auto* part : {&targets, &kp, &kd}) packet.insert(packet.end(), part->begin(), part->end());
    if (send(socket_, packet.data(), packet.size() * sizeof(double), 0) < 0) std::perror("send");
  }

  // Take the newest message so far; return whether there was any.
  bool read(State& state) const {
    std::vector<double> packet(9 + 3 * joints_ + 1);
    const std::size_t size = (packet.size() - 1) * sizeof(double);
    bool found = false;
    while (true) {
      const ssize_t count = recv(socket_, packet.data(), packet.size() * sizeof(double), MSG_DONTWAIT);
      if (count < 0) return found;
      if (static_cast<std::size_t>(count) != size || packet[0] != kStatePacket) continue;
      const double* next = packet.data() + 2;
      state.received = Clock::now();
      state.angles.assign(next, next + joints_);
      state.speeds.assign(next + joints_, next + 2 * joints_);
      std::copy_n(next + 3 * joints_, 4, state.quaternion);
      std::copy_n(next + 3 * joints_ + 4, 3, state.gyro);
      found = true;
    }
  }

 private:
  std::size_t joints_;
  int socket_;
};

template <std::size_t N>
std::vector<std::size_t> places(const char* const (&names)[N], const std::vector<std::string>& robot) {
  std::vector<std::size_t> found;
  for (const char* name : names) {
    const auto place = std::find(robot.begin(), robot.end(), name);
    if (place == robot.end()) std::fprintf(stderr, "the robot has no joint %s\n", name), std::exit(2);
    found.push_back(static_cast<std::size_t>(place - robot.begin()));
  }
  return found;
}

// Return why the run has to end, or "".
std::string trouble(const State& state, double late) {
  double fastest = 0;
  for (double speed : state.speeds) fastest = std::isfinite(speed) ? std::max(fastest, std::abs(speed)) : NAN;
  if (interrupted) return "it was interrupted";
  if (!(Seconds(Clock::now() - state.received).count() <= kStale)) return "the newest message is old";
  if (!(late <= kLate)) return "a control step was late";
  if (!(-state.gravity(2) >= std::cos(kTilt))) return "the trunk is tilted";
  return fastest <= kSpeed ? "" : "a joint is too fast";
}

// Set the clock of a policy that has one.
template <typename Sensors>
auto set_clock(Sensors& sensors, double seconds, int) -> decltype(sensors.clock[0], void()) {
  const double cycle = 2 * 3.14159265358979323846 * seconds / policy::kCycle;
  sensors.clock[0] = static_cast<float>(std::sin(cycle));
  sensors.clock[1] = static_cast<float>(std::cos(cycle));
}
template <typename Sensors>
void set_clock(Sensors&, double, long) {}

policy::Sensors measure(const State& state, const std::vector<std::size_t>& order, const float (&command)[3],
                        double seconds) {
  policy::Sensors sensors{};
  set_clock(sensors, seconds, 0);
  for (int axis = 0; axis < 3; ++axis) {
    sensors.angular_velocity[axis] = static_cast<float>(state.gyro[axis]);
    sensors.gravity[axis] = static_cast<float>(state.gravity(axis));
    sensors.command[axis] = command[axis];
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    sensors.angles[i] = static_cast<float>(state.angles[order[i]]);
    sensors.speeds[i] = static_cast<float>(state.speeds[order[i]]);
  }
  return sensors;
}

}  // namespace

int main(int count, char** words) {
  if (count < 7) return std::fprintf(stderr, "robot <port> <seconds> <ahead> <left> <turn> <joint>...\n"), 2;
  const double seconds = std::atof(words[2]);
  const float command[] = {std::strtof(words[3], nullptr), std::strtof(words[4], nullptr),
                           std::strtof(words[5], nullptr)};
  const std::vector<std::string> joints(words + 6, words + count);
  const auto order = places(policy::kAngleJoints, joints), servos = places(policy::kServoJoints, joints);
  const Link link(std::atoi(words[1]), joints.size());
  std::signal(SIGINT, [](int) { interrupted = 1; });

  std::vector<double> zeros(joints.size(), 0.0), kp = zeros, kd = zeros, targets, gains = zeros;
  for (std::size_t i = 0; i < servos.size(); ++i) kp[servos[i]] = policy::kKp[i], kd[servos[i]] = policy::kKd[i];
  link.write(kDamp, zeros, zeros, zeros);  // tells the robot where to answer
  State state;
  auto due = Clock::now();
  const auto step = std::chrono::duration_cast<Clock::duration>(Seconds(policy::kStep));
  for (int tries = 0; !link.read(state); ++tries) {
    if (tries > 100) return std::fprintf(stderr, "the robot sends no message\n"), 2;
    std::this_thread::sleep_until(due += step);
  }

  const State first = state;
  targets = first.angles;
  policy::Policy robot;
  std::string reason;
  const int start = static_cast<int>(kStart / policy::kStep), steps = static_cast<int>(seconds / policy::kStep);
  for (int tick = 1; tick <= start + steps && reason.empty(); ++tick) {
    std::this_thread::sleep_until(due += step);
    link.read(state);
    reason = trouble(state, Seconds(Clock::now() - due).count());
    const double share = std::min(1.0, static_cast<double>(tick) / start);
    if (tick > start) robot.step(measure(state, order, command, (tick - start - 1) * policy::kStep));
    for (std::size_t i = 0; i < servos.size(); ++i) {
      const double home = first.angles[servos[i]] + share * (policy::kHome[i] - first.angles[servos[i]]);
      const double wanted = tick > start ? robot.ctrl[i] : home;
      if (!std::isfinite(wanted)) reason = "a number of the policy is not finite";
      targets[servos[i]] = std::clamp(wanted, double{policy::kLow[i]}, double{policy::kHigh[i]});
    }
    for (std::size_t i = 0; i < kp.size(); ++i) gains[i] = std::min(1.0, 2 * share) * kp[i];
    if (reason.empty()) link.write(tick > start ? kAct : kMove, targets, gains, kd);
  }

  std::printf("the run ended: %s\n", reason.empty() ? "its time was over" : reason.c_str());
  const std::vector<double> damping(joints.size(), kDamping);
  for (due = Clock::now(); Clock::now() < due + Seconds(kStop); std::this_thread::sleep_for(step)) {
    link.write(kDamp, zeros, zeros, damping);
  }
  return reason.empty() ? 0 : 1;
}
