"""A topic of Kafka learned from while it grows: stopped and gone on with, and what is said sent to another topic.

KAFKA=localhost:9092 python examples/kafka_topics.py      # without it, a mock within this process
"""

# %% A broker, and clicks in four partitions; one message is broken
import json
import os
import shlex
import tempfile
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

import onlinevi as ovi
from onlinevi.adapters.cli import main

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)
settings = {"bootstrap.servers": os.environ.get("KAFKA", "mock"), "log_level": 0}
producer = Producer(settings if "KAFKA" in os.environ else settings | {"test.mock.num.brokers": 1})
broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
where, topic = f"{broker.host}:{broker.port}", f"clicks_{os.getpid()}"
rng = np.random.default_rng(0)


def shell(command):
    print("$ onlinevi", command)
    main(shlex.split(command))


def happen(count):
    for hour, price in zip(rng.integers(0, 24, count), rng.uniform(1, 9, count), strict=True):
        clicked = "yes" if rng.random() < 1 / (1 + np.exp(2 * price - hour / 2)) else "no"
        producer.produce(topic, json.dumps({"hour": int(hour), "price": round(price, 2), "clicked": clicked}))
    producer.flush()


# %% The call that starts it is the one that goes on; without --until-end it would wait for more
happen(400)
producer.produce(topic, "not JSON")
call = f"run kafka://{where}/{topic} --target clicked --rule implicit --checkpoint clicks.ovi --resume --until-end"
call += f" --predictions kafka://{where}/said_{topic} --bad-rows kafka://{where}/dead_{topic}"
shell(call)
happen(300)
shell(call)

# %% What was said of each event before its label was used, under the event's place
job = ovi.open("clicks.ovi")
print(job)
consumer = Consumer({"bootstrap.servers": where, "group.id": "any", "log_level": 0})


def first_of(name):
    partitions = consumer.list_topics(name, timeout=10).topics[name].partitions
    consumer.assign([TopicPartition(name, number, 0) for number in partitions])
    message = consumer.poll(10.0)
    return message.key().decode(), json.loads(message.value())


print(*first_of(f"said_{topic}"))
print(*first_of(f"dead_{topic}"))
consumer.close()
